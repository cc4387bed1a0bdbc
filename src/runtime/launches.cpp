#include "runtime/launches.h"

#include <algorithm>

#include <millrace/operator.h>

#include "base/contains.h"
#include "base/format.h"
#include "ops/work.h"

namespace millrace {
namespace {

/// "conv2d", or "fused(mul add)".
std::string operation_of(const Node& node) {
  std::string name(node.op->name);
  if (node.op->op_class != OpClass::group) return name;
  std::string parts;
  for (int i = 0; i < node.body->size(); ++i)
    if (!node.body->node(i).op->is_given())
      parts += (parts.empty() ? "" : " ") + std::string(node.body->node(i).op->name);
  return fmt::format("{}({})", name, parts);
}

std::string types_of(const LaidOutGraph& source, int index) {
  const Node& node = source.graph.node(index);
  std::string types;
  for (size_t r = 0; r < node.types.size(); ++r) {
    const Layout& layout = source.layouts[index][r];
    types += fmt::format("{}{}{}", r ? ", " : "", node.types[r].str(),
                         layout.empty() ? "" : fmt::format(" laid out {}", fmt::join(layout, "")));
  }
  return types;
}

bool reduces(const Node& node) {
  if (node.op->reduction) return true;
  if (!node.body) return false;
  for (int i = 0; i < node.body->size(); ++i)
    if (node.body->node(i).op->reduction) return true;
  return false;
}

/// One use of a storage by a launch.
struct Use {
  int launch;
  size_t traffic;  // index in the launch's traffic
};

/// Fills in the distances: bytes touched from each use of a storage to the next (reads look back, writes
/// ahead), the step being repeated forever. `uses`: of each storage, in order.
void measure_distances(std::vector<LaunchInfo>& launches, const std::vector<std::vector<Use>>& uses) {
  std::vector<double> before(launches.size() + 1, 0);  // bytes of the launches before
  for (size_t l = 0; l < launches.size(); ++l) before[l + 1] = before[l] + launches[l].bytes();
  const double step = before.back();
  for (const std::vector<Use>& of_one : uses) {
    std::vector<int> at;  // launches that use the storage
    for (const Use& use : of_one)
      if (at.empty() || at.back() != use.launch) at.push_back(use.launch);
    const auto gap = [&](size_t from) {  // from use `from` to the one after it
      const size_t to = (from + 1) % at.size();
      const double bytes = before[at[to]] - before[at[from]];
      return to > from ? bytes : bytes + step;
    };
    for (const Use& use : of_one) {
      const size_t here = std::lower_bound(at.begin(), at.end(), use.launch) - at.begin();
      LaunchInfo::Traffic& traffic = launches[use.launch].traffic[use.traffic];
      traffic.distance = gap(traffic.write ? here : (here + at.size() - 1) % at.size());
    }
  }
}

}  // namespace

double LaunchInfo::bytes() const {
  double sum = 0;
  for (const Traffic& t : traffic) sum += t.bytes;
  return sum;
}

std::vector<LaunchInfo> describe_launches(const Plan& plan) {
  const Graph& graph = plan.source.graph;
  std::vector<LaunchInfo> launches;
  std::vector<std::vector<Use>> uses(plan.storages.size());
  std::vector<int> writer(plan.storages.size(), -1);
  for (const PlannedLaunch& planned : plan.launches) {
    const Node& node = graph.node(planned.node);
    LaunchInfo info;
    info.operation = operation_of(node);
    info.origin = node.origin;
    info.provider = planned.provider;
    info.kernel = planned.kernel->description();
    info.declined = planned.declined;
    info.types = types_of(plan.source, planned.node);
    info.reduces = reduces(node);
    info.flops = ops::flops(graph, node);
    info.bits = ops::arithmetic_bits(graph, node);
    const int l = static_cast<int>(launches.size());
    if (l > 0 && planned.chain >= 0 && planned.chain == plan.launches[l - 1].chain)
      info.kernel += ", row by row with the one before";
    const bool in_place = !planned.operands.empty() && !planned.results.empty() &&
                          plan.same_memory(planned.operands[0], planned.results[0]);
    for (size_t k = 0; k < planned.operands.size(); ++k) {
      uses[planned.operands[k]].push_back({l, info.traffic.size()});
      info.traffic.push_back({ops::bytes_read(graph, node, static_cast<int>(k), in_place), 0, false});
      const int from = writer[planned.operands[k]];
      if (from >= 0 && !contains(info.reads, from)) info.reads.push_back(from);
    }
    for (size_t r = 0; r < planned.results.size(); ++r) {
      uses[planned.results[r]].push_back({l, info.traffic.size()});
      info.traffic.push_back({ops::bytes_written(graph, node, static_cast<int>(r), in_place), 0, true});
      writer[planned.results[r]] = l;
    }
    launches.push_back(std::move(info));
  }
  measure_distances(launches, uses);
  return launches;
}

}  // namespace millrace
