#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_not) {
  return ops::stepwise(ops::elementwise_unary("logical_not", "not a", {boolean}), ScalarOp::logical_not,
                       "Not");
}
