#include <optional>

#include <millrace/operator.h>

#include "passes/pass.h"

namespace millrace {
namespace {

/// The value that `value` was cast from bf16 to f32, when it was.
std::optional<Value> before_widening(const Graph& graph, Value value) {
  const Node& node = graph.node(value);
  if (!node.op->converts || graph.type(node.operands[0]).dtype != bf16) return std::nullopt;
  return node.operands[0];
}

/// A bf16 copy of `value`, made before the reshapes that led to it, where the operators are that it can fuse with.
Value narrowed(Graph& graph, Value value) {
  if (const auto narrow = before_widening(graph, value)) return *narrow;
  const Node& node = graph.node(value);
  if (!node.op->reshapes()) return graph.add("cast", {value}, {{"dtype", bf16}});
  const Shape shape = node.types[0].shape;
  return graph.add("reshape", {narrowed(graph, node.operands[0])}, {{"shape", shape}});
}

}  // namespace

// Mixed precision: matrix products, convolutions and attention of f32 operands run on bf16 copies (sums in f32 inside) and give
// bf16; everything else, and all that is stored between steps, stays f32. The casts fuse into their neighbours.
static Graph narrow_to_bf16(const Graph& graph, const PassContext& context) {
  if (context.precision != "bf16") return graph;
  Rewriter rewrite(graph);
  rewrite.copy_inputs();
  Graph& to = rewrite.graph();
  for (int i = 0; i < graph.size(); ++i) {
    if (rewrite.has({i, 0})) continue;
    const Node& node = graph.node(i);
    if (node.op->reshapes()) {
      // A product's cast to f32 moves behind it, to whoever reads.
      if (const auto narrow = before_widening(to, rewrite[node.operands[0]])) {
        to.set_location(node.location);
        const Value moved = to.add("reshape", {*narrow}, {{"shape", node.types[0].shape}});
        rewrite.set({i, 0}, to.add("cast", {moved}, {{"dtype", f32}}));
        continue;
      }
    }
    const size_t narrow = narrow_operands(node);
    if (narrow == 0 || node.types[0].dtype != f32) {
      rewrite.copy(i);
      continue;
    }
    to.set_location(node.location);
    std::vector<Value> operands = rewrite.mapped(node.operands);
    for (size_t k = 0; k < narrow; ++k) operands[k] = narrowed(to, operands[k]);
    const Value first = to.add(*node.op, operands, node.attributes);
    for (int32_t r = 0; r < static_cast<int32_t>(node.types.size()); ++r) {
      const Value result{first.node, r};
      rewrite.set({i, r}, to.type(result).dtype == f32 ? result : to.add("cast", {result}, {{"dtype", f32}}));
    }
  }
  return rewrite.finish();
}

MILLRACE_PASS(precision){.name = "precision",
                         .doc = "bf16: matrix products, convolutions and attention run on bf16 copies",
                         .place = 80,
                         .run = narrow_to_bf16};

}  // namespace millrace
