#include "ops/loss.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(binary_cross_entropy_with_logits) {
  Operator op = ops::elementwise_loss(
      "binary_cross_entropy_with_logits",
      "−t · log(sigmoid(x)) − (1 − t) · log(1 − sigmoid(x)) for logits x and targets t in [0, 1], without "
      "overflow; "
      "reduced over all elements.",
      [](ops::Build& b, Value x, Value t, const Attributes&) {
        return b.sub(b.unary("softplus", x), b.mul(x, t));
      });
  op.logits = Logits::each;
  return op;
}
