#include "ir/operator.h"
#include "passes/pass.h"

namespace millrace {
namespace {

/// Matrix products and convolutions: the operators that bf16 makes faster.
bool narrows(const Node& node) {
  const std::string_view name = node.op->name;
  return name == "matmul" || name == "conv2d" || name == "conv2d_input_grad" || name == "conv2d_weight_grad";
}

}  // namespace

// Mixed precision: matrix products and convolutions of f32 operands run on bf16 copies (sums in f32 inside) and give
// bf16; everything else, and all that is stored between steps, stays f32. The casts fuse into their neighbours.
Graph narrow_to_bf16(const Graph& graph, const PassContext& context) {
  if (context.precision != "bf16") return graph;
  Rewriter rewrite(graph);
  rewrite.copy_inputs();
  Graph& to = rewrite.graph();
  for (int i = 0; i < graph.size(); ++i) {
    if (rewrite.has({i, 0})) continue;
    const Node& node = graph.node(i);
    if (!narrows(node) || node.types[0].dtype != f32) {
      rewrite.copy(i);
      continue;
    }
    to.set_location(node.location);
    std::vector<Value> operands;
    for (const Value& operand : rewrite.mapped(node.operands)) {
      const Node& producer = to.node(operand);
      // A value that was bf16 a moment ago is read as such.
      if (producer.op->name == "cast" && to.type(producer.operands[0]).dtype == bf16)
        operands.push_back(producer.operands[0]);
      else
        operands.push_back(to.add("cast", {operand}, {{"dtype", bf16}}));
    }
    const Value result = to.add(*node.op, operands, node.attributes);
    rewrite.set({i, 0}, to.add("cast", {result}, {{"dtype", f32}}));
  }
  return rewrite.finish();
}

}  // namespace millrace
