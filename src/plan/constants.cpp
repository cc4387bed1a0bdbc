#include "plan/constants.h"

#include <algorithm>
#include <set>

#include "ops/body.h"
#include "target/shared_constants.h"

namespace millrace {
namespace {

// Small ones are not worth a search.
constexpr int64_t kLeastShared = 4096;

/// Where the constants of a graph and of all graphs within it lie.
void add_constants(const Graph& graph, std::set<const void*>& places) {
  for (int i = 0; i < graph.size(); ++i) {
    if (const Array* const constant = graph.constant_value({i, 0}))
      places.insert(LateArrays::place(*constant));
    if (graph.node(i).body) add_constants(*graph.node(i).body, places);
  }
}

}  // namespace

Graph share_constants(const Graph& graph, const Graph* given) {
  std::set<const void*> others;
  if (given) add_constants(*given, others);
  const std::vector<char> live = ops::needed_by(graph, graph.outputs());
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    if (!live[i]) return true;
    const Array* const constant = graph.constant_value({i, 0});
    if (!constant || constant->bytes() < kLeastShared) return false;
    rewrite.graph().set_origin(graph.node(i).origin);
    const bool nobodys = LateArrays::digest(*constant) || !others.contains(LateArrays::place(*constant));
    rewrite.set({i, 0}, rewrite.graph().constant(shared_constant(*constant, nobodys)));
    return true;
  });
  return rewrite.finish();
}

void release_packed_constants(Plan& plan) {
  std::vector<char> needed(plan.storages.size(), 0), packed(plan.storages.size(), 0);
  for (const PlannedLaunch& launch : plan.launches) {
    const auto* const kernel = dynamic_cast<const PackingKernel*>(launch.kernel.get());
    for (size_t k = 0; k < launch.operands.size(); ++k)
      (kernel && kernel->reads_packed(k) ? packed : needed)[launch.operands[k]] = 1;
  }
  for (const PlannedCopy& copy : plan.copies) needed[copy.from] = 1;
  for (size_t s = 0; s < plan.storages.size(); ++s) {
    const Storage& storage = plan.storages[s];
    if (storage.kind == StorageKind::constant && packed[s] && !needed[s])
      plan.source.graph.drop_elements(storage.index);
  }
}

std::vector<Array> constants_of(const Plan& plan) {
  std::vector<Array> all;
  const auto add = [&](const Array& array) {
    if (!array.empty() &&
        std::none_of(all.begin(), all.end(), [&](const Array& other) { return other.shares_memory(array); }))
      all.push_back(array);
  };
  const Graph& graph = plan.source.graph;
  for (int i = 0; i < graph.size(); ++i)
    if (const Array* const constant = graph.constant_value({i, 0})) add(*constant);
  for (const PlannedLaunch& launch : plan.launches)
    if (const auto* const kernel = dynamic_cast<const PackingKernel*>(launch.kernel.get()))
      for (const Array& array : kernel->packed()) add(array);
  return all;
}

}  // namespace millrace
