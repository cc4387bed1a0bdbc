#include "ops/random.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(random_bits) {
  Operator op = ops::random_operator(
      "random_bits", "Whole numbers of 32 (i32) or 64 (i64) random bits; the key is (seed, step).", i64);
  op.types = [inner = op.types](const TypeContext& c) {
    const DType dtype = c.attributes.dtype("dtype");
    if (dtype != i32 && dtype != i64) c.error("dtype must be i32 or i64");
    return inner(c);
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const auto words = ops::random_words(b, index, c);
    if (c.node.types[0].dtype == i32) return b.cast(words[0], i32);
    const Scalar high = b.binary(ScalarOp::shift_left, b.cast(words[0], u64), b.integer(u64, 32));
    return b.cast(b.binary(ScalarOp::bit_or, high, b.cast(words[1], u64)), i64);
  };
  for (const DType dtype : {i32, i64}) op.samples.push_back(ops::random_sample({5, 33}, {{"dtype", dtype}}));
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}, Shape{2, 3, 7}})
    op.samples.push_back(ops::random_sample(shape, {{"stream", int64_t{7}}}));
  return op;
}
