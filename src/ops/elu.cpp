#include <millrace/onnx_rule.h>

#include "ops/activation.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(elu) {
  Operator op = ops::activation(
      "elu", "x where it is positive, else alpha · (exp(x) − 1). (Clevert et al., 2015)",
      {{"alpha", Attribute(1.0), "minus the limit of the negative side"}},
      [](ops::Build& b, Value x, const Attributes& attributes) {
        const Value zero = b.zeros(x);
        const Value negative = b.unary("expm1", b.binary("minimum", x, zero));
        return b.select(b.binary("greater", x, zero), x, b.mul(negative, attributes.number("alpha")));
      });
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value x = b.widen(c.operands[0]), y = b.widen(c.results[0]), g = b.widen(c.result_gradients[0]);
    // alpha · exp(x) = y + alpha on the negative side.
    const Value negative = b.mul(g, b.add(y, c.node.attributes.number("alpha")));
    const Value dx = b.select(b.binary("greater", x, b.zeros(x)), g, negative);
    return std::vector<Value>{b.cast(dx, b.dtype(c.operands[0]))};
  };
  op.onnx = {"Elu"};
  op.onnx_rule = ops::onnx_with_alpha("Elu");
  return op;
}
