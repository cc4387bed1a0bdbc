#include <millrace/narrow_types.h>
#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/onnx_where.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(select) {
  Operator op;
  op.name = "select";
  op.doc = "b where the condition a holds, else c; all of one shape.";
  op.op_class = OpClass::elementwise;
  op.min_operands = op.max_operands = 3;
  op.types = [](const TypeContext& c) {
    if (!c.operands[0].dtype.is_bool()) c.error("the condition must be bool");
    if (c.operands[1] != c.operands[2] || c.operands[0].shape != c.operands[1].shape)
      c.error("condition and both cases must have one shape, the cases one dtype");
    return std::vector<Type>{c.operands[1]};
  };
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.select(x[0], x[1], x[2]);
  };
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0], zero = b.zeros(g);
    return std::vector<Value>{{}, b.select(c.operands[0], g, zero), b.select(c.operands[0], zero, g)};
  };
  for (const DType dtype : {f32, f64, bf16, f16, i8, u8, i16, u16, i32, u32, i64, u64, boolean})
    op.samples.push_back({.operands = {{boolean, {3, 7}}, {dtype, {3, 7}}, {dtype, {3, 7}}}});
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}})
    op.samples.push_back({.operands = {{boolean, shape}, {f32, shape}, {f32, shape}}});
  op.chooses = true;
  op.arithmetic = Arithmetic::follows;
  op.onnx = {"Where"};
  op.onnx_rule = [](const OnnxCall& c) {
    return std::vector<std::string>{
        ops::onnx_where(c.onnx, c.operands[0], c.operands[1], c.operands[2], c.node.types[0].dtype)};
  };
  return op;
}
