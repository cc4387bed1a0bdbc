#include <cmath>
#include <numbers>

#include "ops/random.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(random_normal) {
  // Box, Muller: "A note on the generation of random normal deviates", 1958.
  Operator op = ops::random_operator(
      "random_normal", "Normal random numbers, mean 0 and deviation 1; the key is (seed, step).", f32,
      {"f32", "f64", "bf16", "f16"});
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const DType dtype = c.node.types[0].dtype;
    const auto words = ops::random_words(b, ops::flat_index(b, index, c), c);
    const int bits = dtype == f64 ? 53 : 24;
    const Scalar first = ops::random_whole(b, words[0], words[1], bits);
    const Scalar second = ops::random_whole(b, words[2], words[3], bits);
    // The first in (0, 1], so that its logarithm is finite.
    const Scalar u = b.mul(b.add(first, 1), std::ldexp(1.0, -bits));
    const Scalar angle = b.mul(second, std::ldexp(2 * std::numbers::pi, -bits));
    const Scalar radius = b.unary(ScalarOp::sqrt, b.mul(b.unary(ScalarOp::log, u), -2));
    return b.cast(b.mul(radius, b.unary(ScalarOp::cos, angle)), dtype);
  };
  for (const DType dtype : {f32, f64, bf16, f16})
    op.samples.push_back(ops::random_sample({5, 33}, {{"dtype", dtype}}));
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}, Shape{2, 3, 7}})
    op.samples.push_back(ops::random_sample(shape, {{"stream", int64_t{7}}}));
  return op;
}
