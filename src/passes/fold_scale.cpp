#include <optional>

#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/convolution.h"
#include "ops/fused_conv2d.h"
#include "passes/pass.h"
#include "passes/per_channel.h"

namespace millrace {
// conv2d(x, w) · s, where w is constant and s a constant per channel, is conv2d(x, w·s); additions of
// constants per channel in between move behind the product. So inference normalisation costs nothing but a
// bias.
static Graph fold_scale(const Graph& graph, const PassContext& context) {
  const std::vector<int> uses = graph.use_counts();
  Rewriter rewrite(graph);
  Graph& to = rewrite.graph();
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    const bool divides = node.op->is(ScalarOp::div);
    if ((!divides && !node.op->is(ScalarOp::mul)) || node.types[0].shape.rank() != 4) return false;
    // The chain conv2d → (add|sub constant)* → this product, each read once.
    for (int side = 0; side < (divides ? 1 : 2); ++side) {
      const auto scale = per_channel(to, rewrite[node.operands[1 - side]]);
      if (!scale) continue;
      Value at = node.operands[side];
      std::vector<std::pair<bool, Value>> terms;  // (subtracted, per channel)
      while (graph.node(at).op->is(ScalarOp::add) || graph.node(at).op->is(ScalarOp::sub)) {
        const auto term = per_channel(to, rewrite[graph.node(at).operands[1]]);
        if (!term || uses[at.node] != 1) break;
        terms.emplace_back(graph.node(at).op->is(ScalarOp::sub), *term);
        at = graph.node(at).operands[0];
      }
      const Node& conv = graph.node(at);
      if (ops::convolution_part(conv) != ops::ConvolutionPart::forward || ops::is_fused_convolution(conv) ||
          uses[at.node] != 1 || !to.constant_value(rewrite[conv.operands[1]]))
        continue;
      ops::Build build(to);
      to.set_origin(conv.origin);
      Value s = *scale;
      if (divides) s = build.div(build.fill(s, 1), s);
      const Value w = rewrite[conv.operands[1]];
      const Value scaled = build.mul(w, build.reshape(s, {build.shape(w)[0], 1, 1, 1}));
      Value result = to.add(*conv.op, {rewrite[conv.operands[0]], scaled}, conv.attributes);
      Value bias;
      for (const auto& [subtracted, term] : terms) {
        const Value part = build.mul(term, s);
        const Value signed_part = subtracted ? build.neg(part) : part;
        bias = bias.valid() ? build.add(bias, signed_part) : signed_part;
      }
      if (bias.valid()) result = build.add(result, build.reshape(bias, {1, build.shape(w)[0], 1, 1}));
      rewrite.set({i, 0}, result);
      return true;
    }
    return false;
  });
  return fold_constants(eliminate_dead(rewrite.finish(), context), context);
}

MILLRACE_PASS(fold_scale){
    .name = "fold-scale",
    .doc = "a constant factor of each channel goes into the weights of the convolution before it",
    .place = 70,
    .run = fold_scale};

}  // namespace millrace
