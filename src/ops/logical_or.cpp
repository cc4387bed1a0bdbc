#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_or) {
  return ops::stepwise(ops::elementwise_binary("logical_or", "a or b", {boolean}), ScalarOp::logical_or,
                       "Or");
}
