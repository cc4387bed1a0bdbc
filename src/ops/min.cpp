#include "ops/reduce.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(min) {
  return ops::extreme_reduction("min",
                                "The smallest over `axes`; NaN where one is NaN, the dtype's highest value "
                                "over nothing. Equal extremes "
                                "share the gradient.",
                                Reduction::min, "ReduceMin");
}
