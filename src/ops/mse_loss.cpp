#include "ops/loss.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(mse_loss) {
  return ops::elementwise_loss("mse_loss", "(prediction − target)², reduced over all elements.",
                               [](ops::Build& b, Value prediction, Value target, const Attributes&) {
                                 const Value difference = b.sub(prediction, target);
                                 return b.mul(difference, difference);
                               });
}
