#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_and) {
  return ops::stepwise(ops::elementwise_binary("logical_and", "a and b", {boolean}), ScalarOp::logical_and,
                       "And");
}
