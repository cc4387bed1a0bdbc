#include "ops/reduce.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(argmin) {
  return ops::position_reduction(
      "argmin",
      "The position of the smallest along one axis: the first of equals, and NaN counts as the smallest.",
      Reduction::argmin, "ArgMin");
}
