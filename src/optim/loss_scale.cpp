#include "optim/loss_scale.h"

#include "base/format.h"
#include "ops/build.h"

namespace millrace::optim {

void check_scaling(const LossScaling& scaling) {
  if (!(scaling.initial > 0 && scaling.initial <= kLargestLossScale))
    fail<InputError>("a loss is scaled by more than 0 and at most {}, not by {}", kLargestLossScale,
                     scaling.initial);
  if (scaling.growth_steps < 1)
    fail<InputError>("a loss scale grows after 1 step or more, not after {}", scaling.growth_steps);
}

std::vector<Value> unscaled(Graph& graph, std::vector<Value> gradients, Value scale) {
  ops::Build b(graph);
  // Scales are powers of two unless the first one was none, so this loses nothing.
  const Value inverse = b.unary("reciprocal", scale);
  for (Value& g : gradients) g = b.mul(g, inverse);
  return gradients;
}

Value all_finite(Graph& graph, std::span<const Value> gradients) {
  ops::Build b(graph);
  Value bad;  // how many elements are not finite
  for (const Value& g : gradients) {
    const Value count = b.sum(b.cast(b.unary("logical_not", b.unary("is_finite", g)), f32), {}, false);
    bad = bad.valid() ? b.add(bad, count) : count;
  }
  return bad.valid() ? b.binary("equal", bad, b.zeros(bad)) : graph.constant(Array::full(boolean, {}, 1));
}

ScaleState next_scale(Graph& graph, const ScaleState& old, Value finite, Value made,
                      const LossScaling& scaling) {
  ops::Build b(graph);
  const Value zero = b.scalar(i64, 0), good = b.add(old.good, b.scalar(i64, 1));
  const Value due = b.binary("greater_equal", good, b.scalar(i64, static_cast<double>(scaling.growth_steps)));
  const Value grown = b.binary("minimum", b.mul(old.scale, 2), b.scalar(f32, kLargestLossScale));
  ScaleState next;
  next.scale = b.select(finite, b.select(due, grown, old.scale), b.mul(old.scale, 0.5));
  next.good = b.select(finite, b.select(due, zero, good), zero);
  next.skipped = b.add(old.skipped, b.select(made, zero, b.scalar(i64, 1)));
  return next;
}

}  // namespace millrace::optim
