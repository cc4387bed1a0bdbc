// Passes: named functions from graph to graph, verified between, that can be switched off and dumped.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <millrace/graph.h>

#include "target/provider.h"

namespace millrace {

struct PassContext {
  const Target& target;
  std::string precision;  // "fp32" or "bf16"
  /// Evaluates a node of constant operands (the reference back end, handed in).
  std::function<std::vector<Array>(const Graph& graph, const Node& node, std::span<const Array> operands)>
      evaluate;
};

struct Pass {
  std::string_view name;
  Graph (*run)(const Graph& graph, const PassContext& context);
};

/// The passes in the order they run on a specialised graph.
std::span<const Pass> graph_passes();

/// Runs the passes, verifying the graph after each; each is applied to the bodies of loops first.
/// The environment variable MILLRACE_DISABLE=fuse,cse switches passes
/// off (an unknown name throws InputError), MILLRACE_DUMP=fuse prints the graph before and after to standard error.
Graph run_passes(Graph graph, const PassContext& context);

// One file each.
Graph inline_composites(const Graph& graph, const PassContext& context);
Graph tidy_scans(const Graph& graph, const PassContext& context);
Graph simplify(const Graph& graph, const PassContext& context);
Graph narrow_to_bf16(const Graph& graph, const PassContext& context);
Graph fold_constants(const Graph& graph, const PassContext& context);
Graph fold_scale(const Graph& graph, const PassContext& context);
Graph hoist(const Graph& graph, const PassContext& context);
Graph eliminate_common(const Graph& graph, const PassContext& context);
Graph eliminate_dead(const Graph& graph, const PassContext& context);
Graph fuse(const Graph& graph, const PassContext& context);

}  // namespace millrace
