#include "ops/random.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

/// squares64 (B. Widynski, "Squares: a fast counter-based RNG", arXiv 2004.06278), a fifth of Philox's
/// operations: noise for rounding is drawn for every parameter in every step. Philox makes the key, once.
Scalar squares(ScalarBuilder& b, Scalar counter, Scalar key) {
  const auto swapped = [&](Scalar x) {
    const Scalar by = b.integer(u64, 32);
    return b.binary(ScalarOp::bit_or, b.binary(ScalarOp::shift_right, x, by),
                    b.binary(ScalarOp::shift_left, x, by));
  };
  const Scalar y = b.mul(counter, key), z = b.add(y, key);
  Scalar x = swapped(b.add(b.mul(y, y), y));
  x = swapped(b.add(b.mul(x, x), z));
  x = swapped(b.add(b.mul(x, x), y));
  const Scalar t = b.add(b.mul(x, x), z);
  x = swapped(t);
  const Scalar last = b.binary(ScalarOp::shift_right, b.add(b.mul(x, x), y), b.integer(u64, 32));
  return b.binary(ScalarOp::bit_xor, t, last);
}

}  // namespace

MILLRACE_OPERATOR(random_bits) {
  Operator op = ops::random_operator(
      "random_bits",
      "Whole numbers of 32 (i32) or 64 (i64) random bits; the key is (seed, step). Element i is "
      "squares64(i, key), whose key are the first two words of philox(counter = (0, 0, stream, step), key = "
      "seed), and odd; 32 bits are the upper ones.",
      i64, {"i32", "i64"});
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const auto words = ops::random_words(b, b.integer(i64, 0), c);
    const Scalar high = b.binary(ScalarOp::shift_left, b.cast(words[0], u64), b.integer(u64, 32));
    const Scalar key = b.binary(ScalarOp::bit_or, b.binary(ScalarOp::bit_or, high, b.cast(words[1], u64)),
                                b.integer(u64, 1));
    const Scalar bits = squares(b, b.cast(ops::flat_index(b, index, c), u64), key);
    if (c.node.types[0].dtype == i64) return b.cast(bits, i64);
    return b.cast(b.cast(b.binary(ScalarOp::shift_right, bits, b.integer(u64, 32)), u32), i32);
  };
  for (const DType dtype : {i32, i64}) op.samples.push_back(ops::random_sample({5, 33}, {{"dtype", dtype}}));
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}, Shape{2, 3, 7}})
    op.samples.push_back(ops::random_sample(shape, {{"stream", int64_t{7}}}));
  return op;
}
