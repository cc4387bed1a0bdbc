#include <optional>
#include <vector>

#include <millrace/operator.h>

#include "ops/build.h"
#include "passes/pass.h"

namespace millrace {
namespace {

bool computes(const Target& target, DType dtype) {
  return dtype == f32 || dtype == f64 || (dtype == bf16 && target.fast_bf16);
}

/// What a product's operands are rounded to: the type of the first that is 16 bits wide.
std::optional<DType> rounded_to(const Graph& graph, const Node& node) {
  for (const Value& operand : node.operands)
    if (const DType dtype = graph.type(operand).dtype; dtype == bf16 || dtype == f16) return dtype;
  return std::nullopt;
}

}  // namespace

// Products of f16, which no CPU here has units for, and of bf16 where it has none: sums are in f32 anyway, so
// f32 kernels give the same from the same numbers, rounded once at the end.
static Graph widen_products(const Graph& graph, const PassContext& context) {
  if (!context.target.fuses) return graph;
  Rewriter rewrite(graph);
  Graph& to = rewrite.graph();
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    if (node.body || arithmetic_of(*node.op) != Arithmetic::narrow) return false;
    const std::optional<DType> narrow = rounded_to(graph, node);
    if (!narrow || computes(context.target, *narrow)) return false;
    to.set_origin(node.origin);
    ops::Build b(to);
    std::vector<Value> operands = rewrite.mapped(node.operands);
    for (Value& operand : operands)
      if (b.dtype(operand) == *narrow) operand = b.cast(operand, f32);
    const Value wide = to.add(*node.op, operands, node.attributes);
    for (int32_t r = 0; r < static_cast<int32_t>(node.types.size()); ++r)
      rewrite.set({i, r}, b.cast({wide.node, r}, node.types[r].dtype));
    return true;
  });
  return rewrite.finish();
}

MILLRACE_PASS(widen_products){.name = "widen-products",
                              .doc = "products in a type that the target has no units for compute in f32",
                              .place = 78,
                              .run = widen_products};

}  // namespace millrace
