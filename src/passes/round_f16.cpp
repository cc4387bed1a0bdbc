#include <millrace/operator.h>

#include "passes/pass.h"

namespace millrace {
namespace {

/// `value` as f16 holds it, in f32.
Value through_f16(Graph& graph, Value value) {
  const Node& node = graph.node(value);
  if (node.op->converts && graph.type(node.operands[0]).dtype == f16) return value;
  return graph.add("cast", {graph.add("cast", {value}, {{"dtype", f16}})}, {{"dtype", f32}});
}

}  // namespace

// Mixed precision as a GPU with f16 units computes it: matrix products and convolutions of f32 operands read
// values that were rounded to f16, sum in f32, and give f16. No CPU here is fast in f16, so f32 kernels
// compute with the rounded values: overflows and vanishing gradients are those of f16, the speed is that of
// f32.
static Graph round_to_f16(const Graph& graph, const PassContext& context) {
  if (context.precision != "fp16") return graph;
  Rewriter rewrite(graph);
  Graph& to = rewrite.graph();
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    if (arithmetic_of(*node.op) != Arithmetic::narrow || node.types[0].dtype != f32) return false;
    to.set_origin(node.origin);
    std::vector<Value> operands;
    for (const Value& operand : rewrite.mapped(node.operands)) operands.push_back(through_f16(to, operand));
    rewrite.set({i, 0}, through_f16(to, to.add(*node.op, operands, node.attributes)));
    return true;
  });
  return rewrite.finish();
}

MILLRACE_PASS(round_f16){
    .name = "round-f16",
    .doc = "fp16: operands and results of matrix products and convolutions are rounded to f16",
    .place = 90,
    .run = round_to_f16};

}  // namespace millrace
