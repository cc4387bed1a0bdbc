#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/onnx_where.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(rem) {
  Operator op = ops::elementwise_binary(
      "rem",
      "a − b · trunc(a / b): the remainder with the sign of a, as fmod in C; of integers, rem(x, 0) is 0");
  set_scalar(op, ScalarOp::rem);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0];
    const Value a = c.operands[0], z = c.operands[1];
    return std::vector<Value>{g, b.neg(b.mul(g, b.unary("trunc", b.div(a, z))))};
  };
  ops::set_range(op, 0.5, 5);
  op.samples.push_back({.operands = {{i32, {9, 9}}, {i32, {9, 9}}}, .int_low = -9, .int_high = 9});
  op.onnx = {"Mod"};
  op.onnx_rule = [](const OnnxCall& c) {
    const DType dtype = c.types[0].dtype;
    std::string divisor = c.operands[1];
    if (!dtype.is_float())  // what is left of a division by 1 is 0, too
      divisor =
          ops::onnx_where(c.onnx, c.onnx.node("Equal", {divisor, c.scalar(0)}), c.scalar(1), divisor, dtype);
    return c.one("Mod", {c.operands[0], divisor}, {{"fmod", int64_t{1}}});
  };
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  return op;
}
