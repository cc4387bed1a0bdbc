#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(round) {
  return ops::rounding("round", "x rounded to a whole number, halves to the even one", ScalarOp::round_even,
                       "Round");
}
