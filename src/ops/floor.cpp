#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(floor) {
  return ops::rounding("floor", "The largest whole number ≤ x", ScalarOp::floor, "Floor");
}
