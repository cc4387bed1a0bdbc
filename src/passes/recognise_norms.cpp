#include <optional>

#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/norm_form.h"
#include "passes/pass.h"

namespace millrace {
namespace {

/// One number for each place of the last axis, the same everywhere else.
std::optional<Value> along_last(const Graph& graph, Value v, const Type& like) {
  while (graph.node(v).op->broadcasts) v = graph.node(v).operands[0];
  const auto& [dtype, shape] = graph.type(v);
  const bool fits =
      shape.rank() > 0 && shape.back() == like.shape.back() && shape.elements() == like.shape.back();
  return fits && dtype == like.dtype ? std::optional(v) : std::nullopt;
}

/// Where a norm with weight and bias ends at node i, the operator instead.
bool write_norm(const Graph& graph, int i, Rewriter& rewrite) {
  const Node& end = graph.node(i);
  if (!end.op->is(ScalarOp::add) || !end.types[0].dtype.is_float()) return false;
  for (int side = 0; side < 2; ++side) {
    const auto bias = along_last(graph, end.operands[1 - side], end.types[0]);
    const Node& product = graph.node(end.operands[side]);
    if (!bias || !product.op->is(ScalarOp::mul)) continue;
    for (int factor = 0; factor < 2; ++factor) {
      const auto weight = along_last(graph, product.operands[1 - factor], end.types[0]);
      const auto norm = weight ? ops::centred_norm(graph, product.operands[factor]) : std::nullopt;
      if (!norm || !(norm->eps >= 0)) continue;  // the operator takes no less
      ops::Build b(rewrite.graph());
      rewrite.graph().set_origin(end.origin);
      const Shape last{end.types[0].shape.back()};
      const Value w = b.reshape(rewrite[*weight], last), offset = b.reshape(rewrite[*bias], last);
      rewrite.set({i, 0}, rewrite.graph().add("layer_norm", {rewrite[norm->x], w, offset},
                                              {{"axis", int64_t{-1}}, {"eps", norm->eps}}));
      return true;
    }
  }
  return false;
}

}  // namespace

// Layer norms that were written as means, squares and roots (as exporters of other programs do) become the
// operator, which reads each row once.
static Graph recognise_norms(const Graph& graph, const PassContext& context) {
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) { return write_norm(graph, i, rewrite); });
  return eliminate_dead(rewrite.finish(), context);
}

MILLRACE_PASS(recognise_norms){.name = "recognise-norms",
                               .doc = "means, squares and roots that are a layer norm become that operator",
                               .place = 26,
                               .run = recognise_norms};

}  // namespace millrace
