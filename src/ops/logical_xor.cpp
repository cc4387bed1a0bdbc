#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_xor) {
  return ops::stepwise(ops::elementwise_binary("logical_xor", "Either a or b", {boolean}),
                       ScalarOp::not_equal, "Xor");
}
