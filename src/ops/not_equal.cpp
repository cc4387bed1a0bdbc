#include <millrace/onnx_rule.h>

#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(not_equal) {
  Operator op = ops::comparison("not_equal", "a ≠ b", ScalarOp::not_equal);
  op.errors = ErrorGrowth::decisive;
  op.onnx_rule = [](const OnnxCall& c) { return c.one("Not", {c.onnx.node("Equal", c.operands)}); };
  return op;
}
