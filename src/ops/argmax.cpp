#include "ops/reduce.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(argmax) {
  return ops::position_reduction(
      "argmax",
      "The position of the largest along one axis: the first of equals, and NaN counts as the largest.",
      Reduction::argmax, "ArgMax");
}
