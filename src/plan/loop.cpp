#include <algorithm>
#include <cstring>
#include <deque>

#include <millrace/operator.h>

#include "base/contains.h"
#include "base/format.h"
#include "base/run_token.h"
#include "ops/cond.h"
#include "ops/matmul.h"
#include "ops/scan.h"
#include "plan/choose_kernels.h"
#include "plan/constants.h"
#include "plan/plan_kernels.h"
#include "plan/rows.h"
#include "target/shared_constants.h"

namespace millrace {
namespace {

/// Rows of a part: enough for a product at nearly full speed, few enough that a small batch keeps several
/// cores busy.
constexpr int64_t rows_wanted = 16;

constexpr int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

char* at(void* base, int64_t bytes) { return static_cast<char*>(base) + bytes; }

/// Whether a bool[] is true.
bool holds(const void* condition) { return *static_cast<const uint8_t*>(condition) != 0; }

/// How the rows are cut.
struct Cut {
  int64_t rows = 0;          // of all parts; 0: not cut
  std::vector<char> inputs;  // body input → has rows
};

/// What one part reads and writes, in bytes.
struct Piece {
  int64_t bytes = 0;   // of the part's own slice
  int64_t step = 0;    // from one step to the next
  int64_t offset = 0;  // of the part's first row
};

/// The body for some rows, with its memory. A copy is for one more program.
class Part {
 public:
  Part(const ops::Scan& scan, const Graph& whole, Graph body, const Cut& cut, int64_t first_row,
       const Target& target, DeviceContext device)
      : s_(scan) {
    find_slots(body);
    const auto piece = [&](const Graph& graph, Value mine, Value all, bool rows) {
      Piece p{graph.type(mine).bytes(), whole.type(all).bytes(), 0};
      if (rows) p.offset = p.step / cut.rows * first_row;
      return p;
    };
    for (size_t k = 0; k < body.inputs().size(); ++k)
      inputs_.push_back(piece(body, body.inputs()[k], whole.inputs()[k], cut.rows > 0 && cut.inputs[k]));
    for (size_t k = 0; k < body.outputs().size(); ++k)
      outputs_.push_back(piece(body, body.outputs()[k], whole.outputs()[k], cut.rows > 0));
    body.set_outputs(unique_);
    PlanOptions options;
    options.exact = true;  // what is measured faster may differ from part to part
    for (int k = 0; k < static_cast<int>(inputs_.size()); ++k)
      options.steady_inputs.push_back(k >= s_.carries + s_.sequences && s_.length != Dim(1));
    Plan plan = make_plan(choose_layouts(body, target), target, options, device);
    release_packed_constants(plan);
    plan_ = std::make_shared<const Plan>(std::move(plan));
    kernels_ = PlanKernels(*plan_);
    reserve();
  }

  int64_t scratch_bytes() const { return scratch_bytes_; }
  const Plan& plan() const { return *plan_; }
  /// What it launches.
  std::string description() const {
    std::string text;
    for (const PlannedLaunch& launch : plan_->launches)
      text += fmt::format("; {} {} [{}]", launch.provider, plan_->source.graph.node(launch.node).op->name,
                          launch.kernel->description());
    return text;
  }

  void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) {
    scratch_ = scratch;
    for (size_t k = 0; k < inputs_.size(); ++k) in_[k] = at(operands[k], inputs_[k].offset);
    const int64_t length = s_.length.size();
    for (size_t l = 0; l < plan_->launches.size() && length > 0; ++l)
      if (kept_[l] >= 0) {
        const PlannedLaunch& launch = plan_->launches[l];
        point(launch);
        kernels_[l].prepare(pointers_.data(), at(scratch, kept_[l]), scratch_of(launch), device);
      }
    int64_t step = 0;
    for (; step < length; ++step) {
      if (s_.conditional) {
        if (!holds(in_[0])) break;
        RunToken::go_on();  // it may have no end
      }
      const int64_t position = s_.reverse ? length - 1 - step : step;
      for (int k = s_.carries; k < s_.carries + s_.sequences; ++k)
        in_[k] = at(operands[k], inputs_[k].offset + position * inputs_[k].step);
      for (size_t u = 0; u < out_.size(); ++u)
        out_[u] = stack_of_[u] >= 0 ? stacked(results, stack_of_[u], position)
                                    : at(scratch, buffers_[u] + (step % 2) * buffer_bytes_[u]);
      run_step(device);
      for (int r = s_.carries; r < s_.carries + s_.outputs; ++r)
        if (stack_of_[slot_of_[r]] != r)
          std::memcpy(stacked(results, r, position), out_[slot_of_[r]],
                      static_cast<size_t>(outputs_[r].bytes));
      for (int k = 0; k < s_.carries; ++k) in_[k] = out_[slot_of_[k]];
    }
    for (int k = 0; k < s_.carries; ++k)
      std::memcpy(at(results[k], outputs_[k].offset), in_[k], static_cast<size_t>(outputs_[k].bytes));
    for (int r = s_.carries; r < s_.carries + s_.outputs && step < length; ++r)
      std::memset(stacked(results, r, step), 0, static_cast<size_t>((length - step) * outputs_[r].step));
  }

 private:
  /// Equal outputs are computed once: `slot_of_` says where. A slot that is stacked is computed in its stack,
  /// and a carry in it is read there by the next step.
  void find_slots(const Graph& body) {
    for (int r = 0; r < s_.carries + s_.outputs; ++r) {
      const Value output = body.outputs()[r];
      const auto it = std::find(unique_.begin(), unique_.end(), output);
      slot_of_.push_back(static_cast<int>(it - unique_.begin()));
      if (it == unique_.end()) {
        unique_.push_back(output);
        stack_of_.push_back(-1);
      }
      if (r >= s_.carries && stack_of_[slot_of_[r]] < 0) stack_of_[slot_of_[r]] = r;
    }
  }

  /// Scratch: the arena, then two buffers for each slot that is only carried (the last value and the next).
  void reserve() {
    scratch_bytes_ = round_up(plan_->arena_bytes);
    in_.resize(inputs_.size());
    out_.resize(unique_.size());
    for (size_t u = 0; u < unique_.size(); ++u) {
      const auto r = std::find(slot_of_.begin(), slot_of_.end(), static_cast<int>(u)) - slot_of_.begin();
      buffer_bytes_.push_back(stack_of_[u] >= 0 ? 0 : round_up(outputs_[r].bytes));
      buffers_.push_back(scratch_bytes_);
      scratch_bytes_ += 2 * buffer_bytes_.back();
    }
    for (const PlannedLaunch& launch : plan_->launches) {
      const int64_t bytes = round_up(launch.kernel->kept_bytes());
      kept_.push_back(bytes > 0 ? scratch_bytes_ : -1);
      scratch_bytes_ += bytes;
    }
    size_t count = 0;
    for (const PlannedLaunch& launch : plan_->launches)
      count = std::max(count, launch.operands.size() + launch.results.size());
    pointers_.resize(count);
  }

  void* address(int storage) {
    const Storage& s = plan_->storages[storage];
    switch (s.kind) {
      case StorageKind::arena:
        return at(scratch_, std::max<int64_t>(s.offset, 0));
      case StorageKind::input:
        return in_[s.index];
      case StorageKind::output:
        return out_[s.index];
      case StorageKind::constant:
        return const_cast<void*>(plan_->source.graph.node(s.index).attributes.get<Array>("value").data());
    }
    return nullptr;
  }

  void* stacked(void* const* results, int r, int64_t position) const {
    return at(results[r], outputs_[r].offset + position * outputs_[r].step);
  }

  /// Writes the addresses of a launch's operands and results.
  void point(const PlannedLaunch& launch) {
    size_t n = 0;
    for (const int s : launch.operands) pointers_[n++] = address(s);
    for (const int s : launch.results) pointers_[n++] = address(s);
  }
  void* scratch_of(const PlannedLaunch& launch) {
    return launch.scratch >= 0 ? address(launch.scratch) : nullptr;
  }

  void run_step(DeviceContext device) {
    for (size_t l = 0; l < plan_->launches.size(); ++l) {
      const PlannedLaunch& launch = plan_->launches[l];
      point(launch);
      kernels_[l].run(pointers_.data(), pointers_.data() + launch.operands.size(), scratch_of(launch),
                      device);
    }
    for (const PlannedCopy& copy : plan_->copies)
      std::memcpy(out_[copy.index], address(copy.from), static_cast<size_t>(copy.bytes));
  }

  ops::Scan s_;
  std::vector<Value> unique_;
  std::vector<int> slot_of_, stack_of_;  // result → slot; slot → result that is its stack, or −1
  std::vector<Piece> inputs_, outputs_;  // of body inputs and results
  std::shared_ptr<const Plan> plan_;
  PlanKernels kernels_;
  std::vector<int64_t> buffers_, buffer_bytes_;  // of slots, in scratch
  std::vector<int64_t> kept_;                    // of launches, in scratch; −1: none
  int64_t scratch_bytes_ = 0;
  void* scratch_ = nullptr;
  std::vector<void*> in_, out_, pointers_;
};

/// Whether a body reads an input as the right side of products alone.
bool is_right_side(const Graph& body, Value input) {
  for (int i = 0; i < body.size(); ++i) {
    const Node& node = body.node(i);
    for (size_t k = 0; k < node.operands.size(); ++k)
      if (node.operands[k] == input && !(k == 1 && ops::matmul_of(node))) return false;
  }
  return !contains(body.outputs(), input);
}

/// The body with those constants in it that a loop is given as right sides of products: kernels pack them
/// once, where they would pack an operand in every run. Its inputs stay; `taken` says which nobody reads any
/// more.
Graph with_constants(const Graph& body, const KernelRequest& request, const Cut& cut,
                     std::vector<char>& taken) {
  const ops::Scan s = ops::scan_of(request.node);
  Rewriter rewrite(body);
  taken.assign(body.inputs().size(), 0);
  for (size_t k = 0; k < body.inputs().size(); ++k) {
    const Value input = body.inputs()[k];
    const Value given = rewrite.graph().input(body.input_names()[k], body.type(input));
    const Array* const constant = request.graph.constant_value(request.node.operands[k]);
    const bool whole = static_cast<int>(k) >= s.carries + s.sequences && !(cut.rows > 0 && cut.inputs[k]);
    taken[k] = constant && whole && is_right_side(body, input);
    rewrite.set(input, taken[k] ? rewrite.graph().constant(*constant) : given);
  }
  for (int i = 0; i < body.size(); ++i)
    if (!rewrite.has({i, 0})) rewrite.copy(i);
  rewrite.graph().set_outputs(rewrite.mapped(body.outputs()), body.output_names());
  return std::move(rewrite.graph());
}

class LoopKernel : public Kernel, public PackingKernel {
 public:
  LoopKernel(const KernelRequest& request, const Target& target, DeviceContext device) {
    const ops::Scan s = ops::scan_of(request.node);
    const Graph& body = *request.node.body;
    const Cut cut = find_cut(s, body);
    const int64_t count = cut.rows > 0 ? (cut.rows + rows_wanted - 1) / rows_wanted : 1;
    const int64_t rows = cut.rows > 0 ? (cut.rows + count - 1) / count : 0;
    for (int64_t first = 0; first == 0 || first < cut.rows; first += std::max<int64_t>(rows, 1)) {
      const int64_t mine = std::min(rows, cut.rows - first);
      Graph part = cut.rows > 0 ? *with_rows(body, cut.inputs, mine) : body;
      part = with_constants(part, request, cut, taken_);
      const Part& added = parts_.emplace_back(s, body, std::move(part), cut, first, target, device);
      const std::vector<Array> held = constants_of(added.plan());
      packed_.insert(packed_.end(), held.begin(), held.end());
      offsets_.push_back(scratch_bytes_);
      scratch_bytes_ += added.scratch_bytes();
      slots_bytes_ += added.plan().arena_bytes - added.plan().fixed_bytes;
    }
    description_ = !s.conditional              ? fmt::format("{} steps", s.length.size())
                   : s.length == Dim(no_limit) ? "steps while it goes on"
                                               : fmt::format("{} steps at most", s.length.size());
    if (cut.rows > 0)
      description_ +=
          fmt::format(" × {} part{} of {} rows", parts_.size(), parts_.size() == 1 ? "" : "s", rows);
    description_ += parts_[0].description();
  }

  std::unique_ptr<Kernel> another() const override { return std::make_unique<LoopKernel>(*this); }
  bool reads_packed(size_t operand) const override { return taken_[operand] != 0; }

  void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) override {
    if (parts_.size() == 1) return parts_[0].run(operands, results, scratch, device);
    device.threads().parallel(static_cast<int64_t>(parts_.size()), [&](int64_t p) {
      parts_[p].run(operands, results, at(scratch, offsets_[p]), device);
    });
  }
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  int64_t slots_bytes() const override { return slots_bytes_; }
  std::string description() const override { return description_; }

 private:
  /// Rows are the size of dimension 0 of every carry. Invariants of that size have rows, or else none has.
  static Cut find_cut(const ops::Scan& s, const Graph& body) {
    if (s.carries == 0) return {};
    const Shape& first = body.type(body.inputs()[0]).shape;
    if (first.rank() == 0 || first[0].size() < 2) return {};
    const int64_t rows = first[0].size();
    for (const bool invariants : {true, false}) {
      Cut cut{rows, {}};
      bool fits = true;
      for (int k = 0; k < static_cast<int>(body.inputs().size()); ++k) {
        const Shape& shape = body.type(body.inputs()[k]).shape;
        const bool has = shape.rank() > 0 && shape[0] == rows;
        fits = fits && (has || k >= s.carries);
        cut.inputs.push_back(has && (invariants || k < s.carries + s.sequences));
      }
      if (fits && with_rows(body, cut.inputs, 1)) return cut;
    }
    return {};
  }

  std::deque<Part> parts_;
  std::vector<char> taken_;  // operands that parts have as constants of their own
  std::vector<int64_t> offsets_;
  int64_t scratch_bytes_ = 0, slots_bytes_ = 0;
  std::string description_;
};

/// Both branches, of which one is run: a body of one step each, whose results are its stacks.
class BranchKernel : public Kernel, public PackingKernel {
 public:
  BranchKernel(const KernelRequest& request, const Target& target, DeviceContext device) {
    for (const bool first : {true, false}) {
      Graph branch = ops::branch_of(*request.node.body, first);
      ops::Scan once;
      once.invariants = static_cast<int>(branch.inputs().size());
      once.outputs = static_cast<int>(branch.outputs().size());
      once.length = 1;
      const Graph whole = branch;
      const Part& added = branches_.emplace_back(once, whole, std::move(branch), Cut{}, 0, target, device);
      const std::vector<Array> held = constants_of(added.plan());
      packed_.insert(packed_.end(), held.begin(), held.end());
      scratch_bytes_ = std::max(scratch_bytes_, added.scratch_bytes());
      slots_bytes_ = std::max(slots_bytes_, added.plan().arena_bytes - added.plan().fixed_bytes);
      description_ += (first ? "then" : " | else") + added.description();
    }
  }
  std::unique_ptr<Kernel> another() const override { return std::make_unique<BranchKernel>(*this); }
  bool reads_packed(size_t /*operand*/) const override { return false; }

  void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) override {
    const bool first = holds(operands[0]);
    branches_[first ? 0 : 1].run(operands + 1, results, scratch, device);
  }
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  int64_t slots_bytes() const override { return slots_bytes_; }
  std::string description() const override { return description_; }

 private:
  std::deque<Part> branches_;
  int64_t scratch_bytes_ = 0, slots_bytes_ = 0;
  std::string description_;
};

}  // namespace

std::unique_ptr<Kernel> build_control_flow(const KernelRequest& request, const Target& target,
                                           DeviceContext device) {
  if (request.node.op->op_class == OpClass::branch)
    return std::make_unique<BranchKernel>(request, target, device);
  return std::make_unique<LoopKernel>(request, target, device);
}

}  // namespace millrace
