#include "ops/registry.h"

using namespace millrace;

namespace {

/// To the bf16 above or below x (f32), the nearer one more often: 16 random bits are added below bf16's last
/// digit, and what is carried over counts. So the mean is x, and an x that bf16 holds stays as it is.
Scalar rounded(ScalarBuilder& b, Scalar x, Scalar random, int64_t part) {
  const auto bits = [&](ScalarOp op, Scalar a, int64_t c) {
    return b.binary(op, a, b.integer(b.dtype(a), c));
  };
  const Scalar noise = bits(ScalarOp::bit_and,
                            b.cast(bits(ScalarOp::shift_right, b.cast(random, u64), 16 * part), u32), 0xFFFF);
  const Scalar whole = b.bitcast(x, u32);
  const Scalar kept = bits(ScalarOp::bit_and, b.add(whole, noise), 0xFFFF0000);
  const int64_t exponent = 0x7F800000;  // all ones: infinite or NaN
  const Scalar special = b.equal(bits(ScalarOp::bit_and, whole, exponent), b.integer(u32, exponent));
  return b.cast(b.select(special, x, b.bitcast(kept, f32)), bf16);
}

}  // namespace

MILLRACE_OPERATOR(round_stochastic) {
  Operator op;
  op.name = "round_stochastic";
  op.doc =
      "x (f32) rounded to bf16, up or down at random so that the mean is x; the second operand (i64) holds "
      "random bits.";
  op.op_class = OpClass::elementwise;
  op.min_operands = op.max_operands = 2;
  op.attributes = {
      {"part", Attribute(int64_t{0}), "which 16 of the 64 random bits are used", {.low = 0, .high = 3}}};
  op.differentiable = false;
  op.types = [](const TypeContext& c) {
    if (c.operands[0].dtype != f32 || c.operands[1] != Type{i64, c.operands[0].shape})
      c.error("the operands must be f32 and, of the same shape, i64");
    return std::vector<Type>{{bf16, c.operands[0].shape}};
  };
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node& node) {
    return rounded(b, x[0], x[1], node.attributes.integer("part"));
  };
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}, Shape{3, 33}})
    op.samples.push_back({.operands = {{f32, shape}, {i64, shape}}, .int_low = -70000, .int_high = 70000});
  return op;
}
