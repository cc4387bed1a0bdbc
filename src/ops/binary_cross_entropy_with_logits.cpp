#include "ops/loss.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(binary_cross_entropy_with_logits) {
  Operator op;
  op.name = "binary_cross_entropy_with_logits";
  op.op_class = OpClass::composite;
  op.doc =
      "−t · log(sigmoid(x)) − (1 − t) · log(1 − sigmoid(x)) for logits x and targets t in [0, 1], without "
      "overflow; "
      "reduced over all elements.";
  op.min_operands = op.max_operands = 2;
  op.attributes = {ops::reduction_attribute()};
  op.types = ops::elementwise_loss_types;
  op.logits = Logits::each;
  op.body = [](Graph& graph, std::span<const Value> operands, const Attributes& attributes) {
    ops::Build b(graph);
    const Value x = b.widen(operands[0]), t = b.widen(operands[1]);
    return std::vector<Value>{ops::reduce_loss(b, b.sub(b.unary("softplus", x), b.mul(x, t)), attributes)};
  };
  op.samples = ops::elementwise_loss_samples();
  return op;
}
