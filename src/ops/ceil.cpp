#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(ceil) {
  return ops::rounding("ceil", "The smallest whole number ≥ x", ScalarOp::ceil, "Ceil");
}
