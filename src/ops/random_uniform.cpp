#include <cmath>

#include "ops/random.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(random_uniform) {
  Operator op = ops::random_operator(
      "random_uniform",
      "Uniform random numbers in [0, 1); the key is (seed, step). f32 has 24 random bits, f64 53.", f32,
      {"f32", "f64", "bf16", "f16"});
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const DType dtype = c.node.types[0].dtype;
    const auto words = ops::random_words(b, ops::flat_index(b, index, c), c);
    // No more than the dtype holds, or 1 − ε would round to 1.
    const int bits = dtype == f64 ? 53 : dtype == f32 ? 24 : dtype == f16 ? 11 : 8;
    const Scalar whole = ops::random_whole(b, words[0], words[1], bits);
    return b.cast(b.mul(whole, std::ldexp(1.0, -bits)), dtype);
  };
  for (const DType dtype : {f32, f64, bf16, f16})
    op.samples.push_back(ops::random_sample({5, 33}, {{"dtype", dtype}}));
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}, Shape{2, 3, 7}})
    op.samples.push_back(ops::random_sample(shape, {{"stream", int64_t{7}}}));
  return op;
}
