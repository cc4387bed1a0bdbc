#include <millrace/onnx_rule.h>

#include "ops/activation.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(softplus) {
  Operator op = ops::activation("softplus", "log(1 + exp(x)), without overflow.", {},
                                [](ops::Build& b, Value x, const Attributes&) {
                                  const Value tail = b.unary("exp", b.neg(b.unary("abs", x)));
                                  return b.add(b.binary("maximum", x, b.zeros(x)), b.unary("log1p", tail));
                                });
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value dx = b.mul(b.widen(c.result_gradients[0]), b.unary("sigmoid", b.widen(c.operands[0])));
    return std::vector<Value>{b.cast(dx, b.dtype(c.operands[0]))};
  };
  op.lowest = 0;
  op.onnx = {"Softplus"};
  op.onnx_rule = [](const OnnxCall& c) { return c.one("Softplus", c.operands); };
  return op;
}
