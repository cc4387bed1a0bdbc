#include <millrace/narrow_types.h>
#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(cast) {
  Operator op;
  op.name = "cast";
  op.doc =
      "The operand in another dtype. Floats to integers truncate and saturate (NaN gives 0), integers to "
      "narrower ones "
      "wrap, anything to bool is ≠ 0.";
  op.op_class = OpClass::elementwise;
  op.attributes = {{"dtype", AttributeType::dtype, "the result's dtype"}};
  op.types = [](const TypeContext& c) {
    return std::vector<Type>{{c.attributes.dtype("dtype"), c.operands[0].shape}};
  };
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node& node) {
    return b.cast(x[0], node.attributes.dtype("dtype"));
  };
  op.gradient = [](const GradientContext& c) {
    const DType from = c.type(c.operands[0]).dtype;
    if (!from.is_float() || !c.node.types[0].dtype.is_float()) return std::vector<Value>{{}};
    return std::vector<Value>{ops::Build(c.graph).cast(c.result_gradients[0], from)};
  };
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      // Of rare types the ways that lead through the common ones.
      const auto common = [](DType dtype) { return dtype == f32 || dtype == f16 || dtype == i32; };
      if (from != to && ((is_rare(from) && !common(to)) || (is_rare(to) && !common(from)))) continue;
      Sample sample{
          .operands = {{from, {3, 7}}}, .attributes = {{"dtype", to}}, .int_low = -3, .int_high = 120};
      const bool negative = from.kind != Kind::unsigned_int;
      if (!negative) sample.int_low = 0;
      op.samples.push_back(sample);
      sample.operands = {{from, {19}}};  // out of the range of narrow integers
      sample.low = -400, sample.high = 400, sample.int_low = negative ? -128 : 0, sample.int_high = 127;
      if (from == i32 || from == i64) sample.int_low = -70000, sample.int_high = 70000;
      op.samples.push_back(sample);
    }
  }
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}})
    op.samples.push_back({.operands = {{f32, shape}}, .attributes = {{"dtype", bf16}}});
  op.arithmetic = Arithmetic::follows;
  op.converts = true;
  op.unchanged = true;
  op.onnx = {"Cast"};
  op.onnx_rule = [](const OnnxCall& c) {
    const DType to = c.attributes().dtype("dtype");
    std::string x = c.operands[0];
    // ONNX's integers of less than a byte take the lowest bits of floats that are too large.
    if (c.types[0].dtype.is_float() && to.is_int() && to.bits < 8) {
      const bool negative = to.kind == Kind::signed_int;
      const double codes = static_cast<double>(1 << to.bits), low = negative ? -codes / 2 : 0;
      x = c.onnx.node("Clip", {x, c.scalar(low), c.scalar(low + codes - 1)});
    }
    return c.one("Cast", {x}, {{"to", c.onnx.data_type(to)}});
  };
  return op;
}
