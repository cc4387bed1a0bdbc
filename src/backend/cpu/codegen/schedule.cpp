// How a nest's loops run: their order, which ones merge, lanes, groups and parts. Everything follows from the
// problem alone, never from the number of threads.
#include <algorithm>
#include <numeric>
#include <span>

#include "backend/cpu/codegen/nest.h"
#include "base/cpu.h"
#include "base/format.h"

namespace millrace::codegen {
namespace {

/// A memory access as the loop order sees it.
struct Access {
  Linear offset;
  uint64_t depends;       // dimensions that the offset depends on
  uint64_t indirect = 0;  // … through atoms
  int64_t bytes;
  bool is_store;
};

std::vector<Access> accesses_of(const Nest& nest) {
  std::vector<Access> all;
  const auto add = [&](int offset, DType memory, bool is_store) {
    Access a{nest.dag.to_linear(offset), nest.dag[offset].depends, 0, memory.bytes(), is_store};
    for (const Term& t : a.offset.atoms) a.indirect |= nest.dag[t.id].depends;
    all.push_back(std::move(a));
  };
  for (const Store& s : nest.stores) add(s.offset, s.memory, true);
  for (int id = 0; id < nest.dag.size(); ++id)
    if (nest.dag[id].kind == ExprKind::load) add(nest.dag[id].args[0], nest.dag[id].memory, false);
  return all;
}

constexpr double kStreamBytes = 12e6;

/// Rough cost of memory when dimension d is spread over lanes: contiguous is cheap, gathers and scatters are
/// not.
double lane_cost(const std::vector<Access>& accesses, int d) {
  double cost = 0;
  for (const Access& a : accesses) {
    const auto bytes = static_cast<double>(a.bytes);
    const bool varies = a.depends >> d & 1;
    const bool contiguous = std::abs(a.offset.of_dim(d)) == 1 && !(a.indirect >> d & 1);
    cost += bytes * (!varies ? 0.1 : contiguous ? 1 : a.is_store ? 16 : 8);
  }
  return cost;
}

/// The order of dimensions, outermost first, that suits the accesses best: that of one of them.
std::vector<int> best_order(const Nest& nest) {
  const std::vector<Access> accesses = accesses_of(nest);
  std::vector<int> best(nest.rank());
  std::iota(best.begin(), best.end(), 0);
  if (nest.rank() < 2) return best;
  uint64_t all = 0;
  for (int d = 0; d < nest.rank(); ++d)
    if (nest.sizes()[d] > 1) all |= uint64_t{1} << d;
  double best_cost = -1;
  for (const Access& a : accesses) {
    if ((a.depends & all) != all) continue;
    std::vector<int> order(nest.rank());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
      return std::abs(a.offset.of_dim(x)) > std::abs(a.offset.of_dim(y));
    });
    // Dimensions of size 1 have no coefficient and vanish anyway: the last real one counts.
    int inner = order.back();
    for (const int d : order)
      if (nest.sizes()[d] > 1) inner = d;
    const double cost = lane_cost(accesses, inner);
    if (best_cost < 0 || cost < best_cost) {
      best_cost = cost;
      best = order;
    }
  }
  return best;
}

/// Rows of a few elements that are reduced (the two logits of a classifier) would leave most lanes idle and
/// cost a sum over lanes each: rather a lane a row.
void give_lanes_to_rows(const Nest& nest, std::vector<int>& order) {
  constexpr int64_t kFew = 4, kRows = 16;
  if (order.size() < 2) return;
  int &rows = order[order.size() - 2], &last = order.back();
  if (nest.reduced[last] && nest.sizes()[last] <= kFew && !nest.reduced[rows] && nest.sizes()[rows] >= kRows)
    std::swap(rows, last);
}

void reorder(Nest& nest) {
  std::vector<int> order = best_order(nest);
  std::erase_if(order, [&](int d) { return nest.sizes()[d] == 1; });
  give_lanes_to_rows(nest, order);
  std::vector<int> place(nest.rank(), -1);
  std::vector<int64_t> sizes;
  std::vector<bool> reduced;
  for (const int d : order) {
    place[d] = static_cast<int>(sizes.size());
    sizes.push_back(nest.sizes()[d]);
    reduced.push_back(nest.reduced[d]);
  }
  if (sizes.empty()) {
    sizes.push_back(1);
    reduced.push_back(false);
  }
  nest.rebuild(std::move(sizes), std::move(reduced), [&](Dag& to, const Linear& from) {
    Linear mapped{from.base, {}, {}};
    for (const Term& t : from.dims)
      if (place[t.id] >= 0) mapped.dims.push_back({place[t.id], t.coefficient});
    return to.linear(mapped);
  });
}

/// Merges dimension d + 1 into d: d = f div size, d + 1 = f rem size. Linear forms that step through both
/// evenly stay linear.
void merge(Nest& nest, int d) {
  const int64_t inner = nest.sizes()[d + 1];
  std::vector<int64_t> sizes = nest.sizes();
  std::vector<bool> reduced = nest.reduced;
  sizes[d] *= inner;
  sizes.erase(sizes.begin() + d + 1);
  reduced.erase(reduced.begin() + d + 1);
  nest.rebuild(std::move(sizes), std::move(reduced), [&](Dag& to, const Linear& from) {
    Linear mapped{from.base, {}, {}};
    const int64_t a = from.of_dim(d), b = from.of_dim(d + 1);
    for (const Term& t : from.dims)
      if (t.id < d || t.id > d + 1) mapped.dims.push_back({t.id > d ? t.id - 1 : t.id, t.coefficient});
    const bool even = a == b * inner;
    if (even && b != 0) mapped.dims.push_back({d, b});
    int sum = to.linear(mapped);
    if (!even) {
      const int flat = to.dim(d), size = to.integer(i64, inner);
      const int outer_part =
          to.binary(ScalarOp::mul, to.binary(ScalarOp::div, flat, size), to.integer(i64, a));
      const int inner_part =
          to.binary(ScalarOp::mul, to.binary(ScalarOp::rem, flat, size), to.integer(i64, b));
      sum = to.binary(ScalarOp::add, sum, to.binary(ScalarOp::add, outer_part, inner_part));
    }
    return sum;
  });
}

bool can_collapse(const Nest& nest, int d) {
  if (nest.reduced[d] != nest.reduced[d + 1]) return false;
  const int64_t inner = nest.sizes()[d + 1];
  for (int id = 0; id < nest.dag.size(); ++id) {
    const Linear& l = nest.dag[id].linear;
    if (l.of_dim(d) != l.of_dim(d + 1) * inner) return false;
  }
  return true;
}

void collapse(Nest& nest) {
  for (int d = nest.rank() - 2; d >= 0; --d)
    if (can_collapse(nest, d)) merge(nest, d);
  // A few innermost elements would leave most lanes idle: spread two dimensions over the lanes.
  while (nest.rank() > 1 && nest.sizes().back() < 8 && nest.reduced[nest.rank() - 2] == nest.reduced.back())
    merge(nest, nest.rank() - 2);
}

/// Work of one element in simple vector operations, memory left aside.
double cost_of(const Nest& nest) {
  const uint64_t lane = uint64_t{1} << nest.lane_dim();
  double cost = 1;
  for (int id = 0; id < nest.dag.size(); ++id) {
    const Expr& e = nest.dag[id];
    if (!(e.depends & lane) || e.kind == ExprKind::linear) continue;
    double one = 1;
    if (e.kind == ExprKind::call) one = 100;
    if (e.kind == ExprKind::op && (e.op == ScalarOp::div || e.op == ScalarOp::sqrt || e.op == ScalarOp::rem))
      one = e.dtype.is_float() ? 4 : 20;
    if (e.kind == ExprKind::load) {
      const Linear offset = nest.dag.to_linear(e.args[0]);
      bool indirect = offset.of_dim(nest.lane_dim()) != 1;
      for (const Term& t : offset.atoms) indirect |= (nest.dag[t.id].depends & lane) != 0;
      if (indirect) one = 12;
    }
    cost += e.dtype.bits == 64 ? 2 * one : one;
  }
  return cost;
}

/// Loads that step through another dimension than the lanes (transposes): that dimension runs fastest, in
/// tiles that whole registers of it are loaded for and transposed. Lanes are a cache line of what is stored.
void choose_tiles(Nest& nest) {
  static const int64_t register_bytes = cpu_has("avx512f") ? 64 : 32;
  const int lane = nest.lane_dim();
  int64_t widest = 4;
  for (const Access& a : accesses_of(nest)) {
    const bool strided = std::abs(a.offset.of_dim(lane)) > 1 && !(a.indirect >> lane & 1);
    if (strided) widest = std::max(widest, a.bytes);
    for (int d = 0; d < lane && strided && nest.fastest < 0; ++d)
      if (std::abs(a.offset.of_dim(d)) == 1) nest.fastest = d;
  }
  if (nest.fastest < 0) return;
  const int64_t n = nest.sizes().back();
  if (n >= 16 && nest.sizes()[nest.fastest] >= 16 && nest.cost < 60) {
    nest.lanes = static_cast<int>(64 / widest);
    nest.tile = static_cast<int>(register_bytes / widest);
  }
  nest.group = std::min<int64_t>(n, nest.lanes);
}

void choose_lanes(Nest& nest) {
  nest.cost = cost_of(nest);
  const int64_t n = nest.sizes().back();
  // What takes many operations takes registers. Two vectors of AVX2 are worth those that spill: each waits
  // for its own long chains of operations.
  int lanes = nest.cost > 64 ? 16 : nest.cost > 24 || !nest.has_reduced() ? 32 : 64;
  // Not much more than one vector's worth of idle lanes.
  const auto waste = [&](int width) {
    const int64_t filled = (n + width - 1) / width * width;
    return static_cast<double>(filled) / static_cast<double>(n);
  };
  while (lanes > 16 && waste(lanes) > std::max(1.1, waste(16))) lanes /= 2;
  nest.lanes = lanes;
  if (nest.lane_reduced()) return;
  nest.group = n;
  if (nest.has_reduced())
    nest.group = lanes;
  else if (n > 8192)
    nest.group = nest.rank() == 1 ? 1024 : 4096;
  if (!nest.has_reduced() && nest.reduces.empty()) choose_tiles(nest);  // one element is a reduction, too
}

/// Results too large to be still in a cache when somebody reads them are written past the caches: what is
/// there stays, and their old content is not read first.
void choose_streams(Nest& nest) {
  double elements = 1;
  for (const int64_t size : nest.sizes()) elements *= static_cast<double>(size);
  for (Store& s : nest.stores) {
    const Linear offset = nest.dag.to_linear(s.offset);
    const int64_t align = std::min<int64_t>(64, nest.lanes * s.memory.bytes());
    bool aligned = offset.of_dim(nest.lane_dim()) == 1 && offset.atoms.empty() && offset.base == 0;
    for (const Term& t : offset.dims)
      aligned &= t.id == nest.lane_dim() || t.coefficient * s.memory.bytes() % align == 0;
    if (aligned && elements * static_cast<double>(s.memory.bytes()) >= kStreamBytes)
      s.stream_align = static_cast<int>(align);
  }
}

constexpr double kPartWork = 131072;  // operations that make a part worth its while
constexpr int64_t kMaxParts = 64, kEnoughRows = 16;

/// Cuts a reduced dimension when there are few results and much work.
void choose_parts(Nest& nest) {
  // Whole results can follow row by row what makes their operands.
  if (nest.outer_count() >= kEnoughRows && !nest.reduced[0]) return;
  const double work = nest.outer_elements() * static_cast<double>(nest.outer_count()) * nest.cost;
  const int64_t wanted =
      std::min(static_cast<int64_t>(work / kPartWork), kMaxParts / std::max<int64_t>(nest.outer_count(), 1));
  if (wanted < 2 || nest.reduces.empty()) return;
  int dim = -1;
  for (int d = 0; d < nest.rank(); ++d)
    if (nest.reduced[d] && (dim < 0 || (nest.sizes()[d] > nest.sizes()[dim] && nest.sizes()[dim] < wanted)))
      dim = d;
  if (dim < 0) return;
  const int64_t size = nest.sizes()[dim];
  int64_t part = (size + wanted - 1) / wanted;
  if (dim == nest.lane_dim()) part = (part + nest.lanes - 1) / nest.lanes * nest.lanes;
  if (part >= size) return;
  nest.split = dim;
  nest.part_size = part;
  nest.parts = (size + part - 1) / part;
}

/// Sends the results of a nest in parts to partial buffers.
Combination combine_parts(Nest& nest, int first_buffer) {
  Combination made;
  Nest& last = made.nest;
  std::vector<int> place(nest.rank(), -1);
  std::vector<int64_t> sizes{nest.parts};
  last.reduced = {true};
  for (int d = 0; d < nest.rank(); ++d) {
    if (nest.reduced[d]) continue;
    place[d] = static_cast<int>(sizes.size());
    sizes.push_back(nest.sizes()[d]);
    last.reduced.push_back(false);
  }
  last.dag = Dag(sizes);
  const int64_t kept = std::accumulate(sizes.begin() + 1, sizes.end(), int64_t{1}, std::multiplies<>());

  // Partial results stand in loop order: part, then the kept dimensions.
  Linear here{}, there{0, {{0, kept}}, {}};
  int64_t stride = kept;
  for (int d = 0; d < nest.rank(); ++d) {
    if (nest.reduced[d]) continue;
    stride /= nest.sizes()[d];
    here.dims.push_back({d, stride});
    there.dims.push_back({place[d], stride});
  }
  const int offset = nest.dag.linear(here);
  const int from = last.dag.linear(there);

  const auto partial_buffer = [&](DType memory) {
    made.partial_bytes.push_back(kept * nest.parts * memory.bytes());
    return first_buffer + static_cast<int>(made.partial_bytes.size()) - 1;
  };
  for (Reduce& r : nest.reduces) {
    Reduce final = r;
    int* const root = &final.offset;  // depends on kept dimensions only
    Dag::copy(nest.dag, last.dag, std::span(&root, 1), [&](Dag& to, const Linear& l) {
      Linear mapped = l;
      for (Term& t : mapped.dims) t.id = place[t.id];
      return to.linear(mapped);
    });
    const DType dtype = nest.dag[r.value].dtype;
    const bool arg = r.position >= 0;
    if (arg) {
      r.value_buffer = partial_buffer(dtype);
      final.value = last.dag.load(r.value_buffer, dtype, from, -1);
    }
    r.memory = arg ? i64 : dtype;
    r.buffer = partial_buffer(r.memory);
    if (arg)
      final.position = last.dag.load(r.buffer, i64, from, -1);
    else
      final.value = last.dag.load(r.buffer, dtype, from, -1);
    if (r.kind == Reduction::mean) r.kind = Reduction::sum;
    r.divisor = 1;
    r.offset = offset;
    r.part_stride = kept;
    last.reduces.push_back(final);
  }
  return made;
}

}  // namespace

std::optional<Combination> schedule(Nest& nest, int first_buffer) {
  reorder(nest);
  collapse(nest);
  choose_lanes(nest);
  choose_streams(nest);
  choose_parts(nest);
  if (nest.split < 0) return std::nullopt;
  Combination last = combine_parts(nest, first_buffer);
  nest.rebuild(nest.sizes(), nest.reduced, [](Dag& to, const Linear& l) { return to.linear(l); });
  // No reordering: partial results are in loop order already.
  collapse(last.nest);
  choose_lanes(last.nest);
  return last;
}

}  // namespace millrace::codegen
