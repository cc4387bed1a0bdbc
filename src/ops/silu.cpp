#include "ops/activation.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(silu) {
  return ops::activation(
      "silu", "x · sigmoid(x), also called swish.", {},
      [](ops::Build& b, Value x, const Attributes&) { return b.mul(x, b.unary("sigmoid", x)); });
}
