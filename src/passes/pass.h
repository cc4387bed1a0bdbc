// Passes: named functions from graph to graph, verified between, that can be switched off and dumped. Each is
// a file here with MILLRACE_PASS(name){…}.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/graph.h>
#include <millrace/pass.h>

#include "base/registry.h"
#include "target/provider.h"

namespace millrace {

/// Values that a step computes from one of its parameters alone (bf16 for its products), kept from run to
/// run: inputs of the step behind the others, which it replaces by what the new parameters give, as it does
/// the parameters.
struct Copies {
  std::map<int, int> donations;        // output → input: the step's own, then those of copies
  std::map<int, std::string> refused;  // by number among `copies`: why it must not be kept
  std::vector<CopyInfo> copies;
  Graph make;                   // gives the kept ones, in order, from parameters
  std::vector<int> parameters;  // inputs of the step, for each input of `make`
  bool repeat = false;          // none is kept, and each reader makes its own
};

/// The second forms that passes ask about: products that share a side as one; f32 where the precision is
/// "bf16".
inline constexpr const char *kJoined = "rewritten", *kWide = "f32";

#define MILLRACE_PASS(NAME)      \
  extern const Pass pass_##NAME; \
  const Pass pass_##NAME

/// The passes in the order they run on a specialised graph.
Registry<Pass>& passes();
/// Runs the passes and verifies what they give; each is applied to the bodies of loops first. The
/// environment variable MILLRACE_DISABLE=fuse,add-zero switches passes and rules off (an unknown name throws
/// InputError), MILLRACE_DUMP=fuse prints the graph before and after to standard error. `report` gets each
/// pass that ran.
Graph run_passes(Graph graph, const PassContext& context, std::vector<PassInfo>* report = nullptr);
/// One of them, to the bodies of loops first.
Graph run_pass(const Pass& pass, Graph graph, const PassContext& context);

// Passes that others use within themselves.
Graph simplify(const Graph& graph, const PassContext& context);
Graph fold_constants(const Graph& graph, const PassContext& context);
Graph eliminate_common(const Graph& graph, const PassContext& context);
Graph eliminate_dead(const Graph& graph, const PassContext& context);

}  // namespace millrace
