#include <millrace/onnx_rule.h>

#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(trunc) {
  Operator op = ops::rounding("trunc", "x rounded toward zero", ScalarOp::trunc);
  op.onnx = {"Floor"};
  op.onnx_rule = [](const OnnxCall& c) {
    const std::string floor = c.onnx.node("Floor", {c.onnx.node("Abs", c.operands)});
    return c.one("Mul", {c.onnx.node("Sign", c.operands), floor});
  };
  return op;
}
