#include "plan/plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include <millrace/operator.h>

#include "base/format.h"
#include "passes/pass.h"
#include "plan/choose_kernels.h"

namespace millrace {
namespace {

// Launches up to these sizes may join others: their results live a little longer then.
constexpr double kSmallTime = 100e3;  // ns
constexpr int64_t kSmallBytes = 1 << 20;

class Planner {
 public:
  Planner(LaidOutGraph source, const Target& target, const PlanOptions& options, DeviceContext device)
      : target_(target), options_(options), device_(device) {
    plan_.source = std::move(source);
  }

  Plan run() {
    take_kernels();
    assign_storages();
    bind_outputs();
    schedule();
    group_into_waves();
    reuse_in_place();
    cut_windows();
    lifetimes();
    plan_.arena_bytes = place_storages(plan_.storages);
    find_peak();
    return std::move(plan_);
  }

 private:
  const Graph& graph() const { return plan_.source.graph; }

  void take_kernels() {
    choose_kernels(plan_, target_, options_, device_);
    unordered_ = std::exchange(plan_.launches, {});
    launch_of_.assign(graph().size(), -1);
    for (size_t l = 0; l < unordered_.size(); ++l) launch_of_[unordered_[l].node] = static_cast<int>(l);
  }

  int new_storage(StorageKind kind, int index, int64_t bytes, std::string label) {
    plan_.storages.push_back({kind, index, bytes, 0, -1, 0, -1, -1, std::move(label)});
    return static_cast<int>(plan_.storages.size()) - 1;
  }

  int storage(Value value) const { return storage_of_[value.node][value.output]; }

  void assign_storages() {
    storage_of_.resize(graph().size());
    std::map<int, int> input_index;
    for (size_t i = 0; i < graph().inputs().size(); ++i)
      input_index[graph().inputs()[i].node] = static_cast<int>(i);
    for (int i = 0; i < graph().size(); ++i) {
      const Node& node = graph().node(i);
      if (is_view(plan_.source, i)) {
        storage_of_[i] = {storage(node.operands[0])};
        continue;
      }
      for (size_t r = 0; r < node.types.size(); ++r) {
        StorageKind kind = StorageKind::arena;
        int index = -1;
        if (const auto it = input_index.find(i); it != input_index.end()) {
          kind = StorageKind::input;
          index = it->second;
        } else if (node.op->is_given()) {
          kind = StorageKind::constant;
          index = i;
        }
        std::string label = fmt::format("{} {}{}", node.types[r].str(), node.op->name,
                                        node.origin.empty() ? "" : " in " + node.origin.str());
        storage_of_[i].push_back(new_storage(kind, index, node.types[r].bytes(), std::move(label)));
      }
    }
    readers_.resize(plan_.storages.size());
    for (PlannedLaunch& launch : unordered_) {
      launch.results = storage_of_[launch.node];
      for (const Value& operand : graph().node(launch.node).operands) {
        launch.operands.push_back(storage(operand));
        readers_[storage(operand)].insert(launch.node);
      }
    }
    successors_.resize(graph().size());
    for (int i = 0; i < graph().size(); ++i)
      for (const Value& operand : graph().node(i).operands) successors_[operand.node].insert(i);
  }

  bool reaches(int from, int to) const {
    std::vector<int> stack = {from};
    std::vector<char> seen(graph().size(), 0);
    while (!stack.empty()) {
      const int n = stack.back();
      stack.pop_back();
      if (n == to) return true;
      if (seen[n]) continue;
      seen[n] = 1;
      stack.insert(stack.end(), successors_[n].begin(), successors_[n].end());
    }
    return false;
  }

  /// Outputs are computed where they are wanted when that is possible, else copied at the end.
  void bind_outputs() {
    std::set<int> read_as_output;
    for (const Value& output : graph().outputs()) read_as_output.insert(storage(output));
    for (size_t o = 0; o < graph().outputs().size(); ++o) {
      const Value output = graph().outputs()[o];
      const int s = storage(output);
      const auto donation = options_.donations.find(static_cast<int>(o));
      const bool donated = donation != options_.donations.end();
      const StorageKind kind = donated ? StorageKind::input : StorageKind::output;
      const int index = donated ? donation->second : static_cast<int>(o);
      Storage& storage_ref = plan_.storages[s];
      const bool whole =
          storage_ref.kind == StorageKind::arena && storage_ref.bytes == graph().type(output).bytes();
      if (whole && (!donated || can_overwrite(index, output, read_as_output))) {
        storage_ref.kind = kind;
        storage_ref.index = index;
        continue;
      }
      if (donated && storage_ref.kind == StorageKind::input && storage_ref.index == index)
        continue;  // unchanged
      plan_.copies.push_back({s, kind, index, graph().type(output).bytes()});
    }
    order_copies();
  }

  /// A copy that overwrites an input comes after those that read it. Where inputs go round, one is set aside
  /// first.
  void order_copies() {
    const auto reads = [&](const PlannedCopy& copy, int input) {
      const Storage& from = plan_.storages[copy.from];
      return from.kind == StorageKind::input && from.index == input;
    };
    std::vector<PlannedCopy> left = std::move(plan_.copies), ordered;
    while (!left.empty()) {
      const auto free = std::find_if(left.begin(), left.end(), [&](const PlannedCopy& copy) {
        return copy.kind != StorageKind::input ||
               std::none_of(left.begin(), left.end(), [&](const PlannedCopy& other) {
                 return &other != &copy && reads(other, copy.index);
               });
      });
      if (free != left.end()) {
        ordered.push_back(*free);
        left.erase(free);
        continue;
      }
      const int aside = new_storage(StorageKind::arena, -1, left[0].bytes, "an input that changes places");
      ordered.push_back({left[0].from, StorageKind::arena, aside, left[0].bytes});
      left[0].from = aside;
    }
    plan_.copies = std::move(ordered);
  }

  /// Whether what makes a value may write it into graph input `input`; orders the input's other readers
  /// before it.
  bool can_overwrite(int input, Value value, const std::set<int>& read_as_output) {
    const int target = storage(graph().inputs()[input]);
    if (read_as_output.count(target)) return false;
    while (is_view(plan_.source, value.node)) value = graph().node(value).operands[0];
    const int writer = value.node;
    const PlannedLaunch& launch = unordered_[launch_of_[writer]];
    for (size_t k = 0; k < launch.operands.size(); ++k)
      if (launch.operands[k] == target && !launch.kernel->can_alias(static_cast<int>(k), value.output))
        return false;
    for (int reader : readers_[target])
      if (reader != writer && reaches(writer, reader)) return false;
    for (int reader : readers_[target])
      if (reader != writer) successors_[reader].insert(writer);
    return true;
  }

  /// Launch order: a ready launch that frees at least what it allocates goes first, else the earliest of the
  /// graph.
  void schedule() {
    std::vector<int> waits(graph().size(), 0), reads_left(plan_.storages.size(), 0);
    for (const auto& next : successors_)
      for (int n : next) ++waits[n];
    for (size_t s = 0; s < readers_.size(); ++s) reads_left[s] = static_cast<int>(readers_[s].size());
    std::set<int> ready;
    for (int i = 0; i < graph().size(); ++i)
      if (waits[i] == 0) ready.insert(i);
    const auto growth = [&](int i) {
      if (launch_of_[i] < 0) return int64_t{0};
      const PlannedLaunch& launch = unordered_[launch_of_[i]];
      int64_t bytes = 0;
      for (int s : launch.results)
        if (plan_.storages[s].kind == StorageKind::arena) bytes += plan_.storages[s].bytes;
      for (int s : std::set<int>(launch.operands.begin(), launch.operands.end()))
        if (plan_.storages[s].kind == StorageKind::arena && reads_left[s] == 1)
          bytes -= plan_.storages[s].bytes;
      return bytes;
    };
    while (!ready.empty()) {
      int best = *ready.begin();
      for (int i : ready)
        if (growth(i) <= 0) {
          best = i;
          break;
        }
      ready.erase(best);
      order_.push_back(best);
      if (launch_of_[best] >= 0) {
        PlannedLaunch& launch = unordered_[launch_of_[best]];
        for (int s : std::set<int>(launch.operands.begin(), launch.operands.end())) --reads_left[s];
        plan_.launches.push_back(std::move(launch));
      }
      for (int next : successors_[best])
        if (--waits[next] == 0) ready.insert(next);
    }
    MILLRACE_CHECK(order_.size() == static_cast<size_t>(graph().size()), "the schedule has a cycle");
  }

  /// The rough time of a launch that may join others, else 0.
  double small_time(const PlannedLaunch& launch) const {
    const auto* kernel = dynamic_cast<const ChunkedKernel*>(launch.kernel.get());
    // What is computed again is not to be there earlier than it must.
    if (!kernel || graph().node(launch.node).origin.again) return 0;
    int64_t bytes = kernel->scratch_bytes();
    for (int s : launch.results) bytes += plan_.storages[s].bytes;
    const double time = kernel->nanoseconds();
    return time <= kSmallTime && bytes <= kSmallBytes ? time : 0;
  }

  /// The launches that must run later than each, views being looked through.
  std::vector<std::vector<int>> find_later() const {
    const size_t count = plan_.launches.size();
    std::vector<int> position(graph().size(), -1);
    for (size_t l = 0; l < count; ++l) position[plan_.launches[l].node] = static_cast<int>(l);
    std::vector<std::vector<int>> behind(graph().size()), later(count);
    for (size_t k = order_.size(); k-- > 0;) {
      const int node = order_[k];
      for (int next : successors_[node]) {
        if (position[next] >= 0)
          behind[node].push_back(position[next]);
        else
          behind[node].insert(behind[node].end(), behind[next].begin(), behind[next].end());
      }
      if (position[node] >= 0) later[position[node]] = behind[node];
    }
    return later;
  }

  /// Launches become chains, and small ones that do not depend on each other one wave. The new order keeps
  /// every dependence.
  void group_into_waves() {
    const std::vector<std::vector<int>> later = find_later();
    const size_t count = plan_.launches.size();
    if (options_.chains) form_chains(plan_, later);
    // A unit is a launch, or a chain, which stands where its first member stood.
    std::vector<int> unit(count), unit_of_chain(plan_.chains.size(), -1);
    std::vector<double> small;
    for (size_t l = 0; l < count; ++l) {
      const PlannedLaunch& launch = plan_.launches[l];
      const bool known = launch.chain >= 0 && unit_of_chain[launch.chain] >= 0;
      unit[l] = known ? unit_of_chain[launch.chain] : static_cast<int>(small.size());
      if (!known) small.push_back(launch.chain >= 0 ? 0 : small_time(launch));
      if (launch.chain >= 0) unit_of_chain[launch.chain] = unit[l];
    }
    std::vector<std::vector<int>> after(small.size());
    for (size_t l = 0; l < count; ++l)
      for (const int next : later[l])
        if (unit[next] != unit[l]) after[unit[l]].push_back(unit[next]);
    const std::vector<int> wave = form_waves(after, small);
    for (size_t l = 0; l < count; ++l) plan_.launches[l].wave = wave[unit[l]];
    std::stable_sort(plan_.launches.begin(), plan_.launches.end(),
                     [](const PlannedLaunch& a, const PlannedLaunch& b) { return a.wave < b.wave; });
  }

  /// Whether a launch reads a storage, in a chain: otherwise than by rows.
  bool reads_whole(const PlannedLaunch& launch, int storage_index) const {
    for (size_t k = 0; k < launch.operands.size(); ++k)
      if (launch.operands[k] == storage_index &&
          (launch.chain < 0 || !row_kernel(launch)->takes_row(static_cast<int>(k))))
        return true;
    return false;
  }

  /// Whether a launch of the same wave that stands before launch l still reads a storage when l runs.
  bool read_beside(size_t l, int storage_index) const {
    for (size_t j = l; j-- > 0 && plan_.launches[j].wave == plan_.launches[l].wave;)
      if (reads_whole(plan_.launches[j], storage_index)) return true;
    return false;
  }

  /// What only members of one chain write and read shrinks to the rows at hand.
  void cut_windows() {
    std::vector<int> chain_of(plan_.storages.size(),
                              -2);  // −2: of no launch yet, −1: also of launches outside
    std::vector<char> written(plan_.storages.size(), 0);
    const auto use = [&](int s, int chain) {
      chain_of[s] = chain_of[s] == -2 || chain_of[s] == chain ? chain : -1;
    };
    for (const PlannedLaunch& launch : plan_.launches) {
      for (const int s : launch.operands) use(s, reads_whole(launch, s) ? -1 : launch.chain);
      for (const int s : launch.results) {
        use(s, launch.chain);
        written[s] = 1;
      }
    }
    for (const PlannedCopy& copy : plan_.copies) chain_of[copy.from] = -1;
    for (size_t s = 0; s < plan_.storages.size(); ++s) {
      Storage& storage_ref = plan_.storages[s];
      if (chain_of[s] < 0 || !written[s] || storage_ref.kind != StorageKind::arena) continue;
      const Chain& chain = plan_.chains[chain_of[s]];
      storage_ref.row_bytes = storage_ref.bytes / chain.rows;
      storage_ref.bytes = storage_ref.slots_bytes = chain.slots * window_bytes(chain, storage_ref);
      storage_ref.label = "rows of " + storage_ref.label;
    }
    prepare_chains(plan_, device_.threads().threads());
  }

  /// A result takes over the memory of an operand that is not read later, where the kernel allows it.
  void reuse_in_place() {
    std::vector<int> last_read(plan_.storages.size(), -1);
    for (size_t l = 0; l < plan_.launches.size(); ++l)
      for (int s : plan_.launches[l].operands) last_read[s] = static_cast<int>(l);
    for (const PlannedCopy& copy : plan_.copies) last_read[copy.from] = INT32_MAX;
    std::vector<int> moved(plan_.storages.size());
    for (size_t s = 0; s < moved.size(); ++s) moved[s] = static_cast<int>(s);
    for (size_t l = 0; l < plan_.launches.size(); ++l) {
      PlannedLaunch& launch = plan_.launches[l];
      for (int& s : launch.operands) s = moved[s];
      std::set<int> taken;
      for (size_t r = 0; r < launch.results.size(); ++r) {
        const int result = launch.results[r];
        if (plan_.storages[result].kind != StorageKind::arena) continue;
        for (size_t k = 0; k < launch.operands.size(); ++k) {
          const int operand = launch.operands[k];
          const Storage& from = plan_.storages[operand];
          if (from.kind != StorageKind::arena || from.bytes != plan_.storages[result].bytes ||
              taken.count(operand) || last_read[operand] != static_cast<int>(l) || read_beside(l, operand))
            continue;
          bool all = true;  // every operand position that reads the memory must allow it
          for (size_t j = 0; j < launch.operands.size(); ++j)
            if (launch.operands[j] == operand)
              all = all && launch.kernel->can_alias(static_cast<int>(j), static_cast<int>(r));
          if (!all) continue;
          taken.insert(operand);
          moved[result] = operand;
          last_read[operand] = last_read[result];
          launch.results[r] = operand;
          break;
        }
      }
    }
    for (PlannedCopy& copy : plan_.copies) copy.from = moved[copy.from];
  }

  void lifetimes() {
    const int end = static_cast<int>(plan_.launches.size());
    int first = 0, last = -1;  // of a wave, whose launches run at the same time
    const auto touch = [&](int s) {
      Storage& storage_ref = plan_.storages[s];
      if (storage_ref.first < 0) storage_ref.first = first;
      storage_ref.last = std::max(storage_ref.last, last);
    };
    for (int l = 0; l < end; ++l) {
      PlannedLaunch& launch = plan_.launches[l];
      if (l > last) {
        first = last = l;
        while (last + 1 < end && plan_.launches[last + 1].wave == launch.wave) ++last;
      }
      for (int s : launch.operands) touch(s);
      for (int s : launch.results) touch(s);
      if (const int64_t bytes = launch.kernel->scratch_bytes(); bytes > 0) {
        launch.scratch = new_storage(StorageKind::arena, -1, bytes,
                                     fmt::format("scratch of {}", graph().node(launch.node).op->name));
        plan_.storages[launch.scratch].slots_bytes = launch.kernel->slots_bytes();
        touch(launch.scratch);
      }
    }
    first = last = end;
    for (const PlannedCopy& copy : plan_.copies) {
      touch(copy.from);
      if (copy.kind == StorageKind::arena) touch(copy.index);
    }
  }

  void find_peak() {
    plan_.peak_launch = fullest_launch(plan_.storages, plan_.launches.size());
    std::vector<Storage> fixed = plan_.storages;
    for (Storage& s : fixed) s.bytes -= s.slots_bytes;
    plan_.fixed_peak_launch = fullest_launch(fixed, plan_.launches.size());
    plan_.fixed_bytes = place_storages(fixed);
  }

  Plan plan_;
  const Target& target_;
  const PlanOptions& options_;
  DeviceContext device_;
  std::vector<PlannedLaunch> unordered_;      // in graph order
  std::vector<int> launch_of_;                // node → unordered_
  std::vector<std::vector<int>> storage_of_;  // node → result → storage
  std::vector<std::set<int>> readers_;        // storage → launch nodes
  std::vector<std::set<int>> successors_;     // node → nodes that must come later
  std::vector<int> order_;                    // nodes as scheduled
};

}  // namespace

Plan make_plan(LaidOutGraph source, const Target& target, const PlanOptions& options, DeviceContext device) {
  return Planner(std::move(source), target, options, device).run();
}

}  // namespace millrace
