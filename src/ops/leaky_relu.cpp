#include <millrace/onnx_rule.h>

#include "ops/activation.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(leaky_relu) {
  Operator op = ops::activation("leaky_relu", "x where it is positive, else alpha · x.",
                                {{"alpha", Attribute(0.01), "slope of the negative side"}},
                                [](ops::Build& b, Value x, const Attributes& attributes) {
                                  return b.select(b.binary("greater", x, b.zeros(x)), x,
                                                  b.mul(x, attributes.number("alpha")));
                                });
  op.onnx = {"LeakyRelu"};
  op.onnx_rule = ops::onnx_with_alpha("LeakyRelu");
  return op;
}
