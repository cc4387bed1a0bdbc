#include "ops/reduce.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(max) {
  return ops::extreme_reduction(
      "max",
      "The largest over `axes`; NaN where one is NaN, the dtype's lowest value over nothing. Equal extremes "
      "share the gradient.",
      Reduction::max, "ReduceMax");
}
