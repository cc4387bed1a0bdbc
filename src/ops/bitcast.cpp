#include <utility>

#include <millrace/narrow_types.h>

#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(bitcast) {
  Operator op;
  op.name = "bitcast";
  op.doc = "The operand's bits as another dtype of the same width (not bool).";
  op.op_class = OpClass::elementwise;
  op.attributes = {{"dtype", AttributeType::dtype, "the result's dtype"}};
  op.types = [](const TypeContext& c) {
    const DType from = c.operands[0].dtype, to = c.attributes.dtype("dtype");
    if (from.is_bool() || to.is_bool() || from.bits != to.bits) c.error("the widths differ, or one is bool");
    return std::vector<Type>{{to, c.operands[0].shape}};
  };
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node& node) {
    return b.bitcast(x[0], node.attributes.dtype("dtype"));
  };
  op.differentiable = false;
  const auto sample = [&](DType from, DType to) {
    // Numbers whose bits are a float that is not subnormal: some instructions take those for 0.
    const int64_t low = from.bits >= 16 ? 1200 : 0, high = from.bits >= 16 ? 1300 : from.bits == 8 ? 100 : 1;
    op.samples.push_back(
        {.operands = {{from, {3, 7}}}, .attributes = {{"dtype", to}}, .int_low = low, .int_high = high});
  };
  for (const auto& [a, b] : {std::pair{f32, i32},
                             {f32, u32},
                             {f64, i64},
                             {f64, u64},
                             {f16, u16},
                             {bf16, i16},
                             {i8, u8},
                             {f8e5m2, u8},
                             {f8e4m3fn, i8},
                             {f8e4m3fnuz, u8},
                             {f8e5m2fnuz, u8},
                             {f8e8m0, u8},
                             {f4e2m1, u4},
                             {i4, u4},
                             {i2, u2}}) {
    sample(a, b);
    sample(b, a);
  }
  op.samples.push_back({.operands = {{f32, {}}}, .attributes = {{"dtype", i32}}});
  op.samples.push_back({.operands = {{f32, {1}}}, .attributes = {{"dtype", i32}}});
  op.samples.push_back({.operands = {{f32, {0, 3}}}, .attributes = {{"dtype", i32}}});
  return op;
}
