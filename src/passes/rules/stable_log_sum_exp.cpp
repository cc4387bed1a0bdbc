#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/is.h"
#include "passes/rules/axes.h"
#include "passes/rules/rule.h"

namespace millrace {

// log Σ exp(x) = m + log Σ exp(x − m), m the largest x: no overflow for large x, no log(0) for small ones.
static Value stable_log_sum_exp(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->is(ScalarOp::log)) return {};
  const Node sum = graph.node(operands[0]);
  if (!sum.op->is(Reduction::sum) || !graph.node(sum.operands[0]).op->is(ScalarOp::exp)) return {};
  const Value x = graph.node(sum.operands[0]).operands[0];
  const Shape shape = graph.type(x).shape;
  const std::vector<int64_t> axes = axes_of(sum, shape.rank());
  for (const int64_t axis : axes)
    if (shape[static_cast<size_t>(axis)] == 0) return {};
  // Already made so: x is a difference from its own largest value.
  const Node& inside = graph.node(x);
  if (inside.op->is(ScalarOp::sub) || ops::is(inside, "log_softmax")) return {};
  ops::Build b(graph);
  const Value largest = b.max(x, axes, true);
  // Where all x are −∞ (or one is ∞) the difference would be NaN.
  const Value finite = b.select(b.unary("is_finite", largest), largest, b.zeros(largest));
  const Value total = b.sum(b.unary("exp", b.sub(x, finite)), axes, true);
  return b.reshape(b.add(b.unary("log", total), finite), node.types[0].shape);
}

MILLRACE_RULE(stable_log_sum_exp){.name = "stable-log-sum-exp",
                                  .doc = "log Σ exp(x) = m + log Σ exp(x − m), m the largest x",
                                  .place = 200,
                                  .exact = false,
                                  .apply = stable_log_sum_exp};

}  // namespace millrace
