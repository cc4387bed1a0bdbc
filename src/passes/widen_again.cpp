#include <map>
#include <utility>

#include <millrace/operator.h>

#include "passes/pass.h"

namespace millrace {
namespace {

// Of what is f16: a second copy of less costs more memory than it saves, since small launches share early
// waves.
constexpr int64_t kLeastWideElements = 1 << 18;

/// Whether node i makes an f32 copy of what is stored with half the bits and lives for longer: a parameter in
/// bf16, or what products in f16 read and make.
bool widens(const Graph& graph, int i) {
  const Node& node = graph.node(i);
  if (!node.op->converts || node.types[0].dtype != f32) return false;
  const Type& from = graph.type(node.operands[0]);
  return (from.dtype == f16 && from.shape.count() >= kLeastWideElements) ||
         (from.dtype == bf16 && graph.is_input(node.operands[0]));
}

}  // namespace

// Where products compute in f32, what is stored as bf16 or f16 is copied to f32 for them. Forward and
// backward pass and update make a copy each, just before they read it: copies that live for longer would take
// more memory than f32 parameters do.
static Graph widen_again(const Graph& graph, const PassContext&) {
  Rewriter rewrite(graph);
  Graph& to = rewrite.graph();
  std::map<std::pair<int, Phase>, Value> copies;
  const auto copy_for = [&](const Value& value, Phase phase) {
    Value& copy = copies[{value.node, phase}];
    if (!copy.valid()) {
      const Node& cast = graph.node(value);
      const bool own = cast.origin.phase == phase;
      to.set_origin(own ? cast.origin : cast.origin.repeated(phase));
      copy = to.add(*cast.op, rewrite.mapped(cast.operands), cast.attributes);
    }
    rewrite.set(value, copy);
  };
  rewrite.go_through([&](int i) {
    if (widens(graph, i)) return true;  // not there by itself
    for (const Value& operand : graph.node(i).operands)
      if (widens(graph, operand.node)) copy_for(operand, graph.node(i).origin.phase);
    return false;
  });
  for (const Value& output : graph.outputs())
    if (!rewrite.has(output)) copy_for(output, graph.node(output).origin.phase);
  return rewrite.finish();
}

MILLRACE_PASS(widen_again){
    .name = "widen-again",
    .doc = "where products compute in f32, what is stored as bf16 or f16 is widened just before",
    .place = 180,
    .run = widen_again};

}  // namespace millrace
