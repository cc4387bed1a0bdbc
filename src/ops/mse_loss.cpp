#include "ops/loss.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(mse_loss) {
  Operator op;
  op.name = "mse_loss";
  op.op_class = OpClass::composite;
  op.doc = "(prediction − target)², reduced over all elements.";
  op.min_operands = op.max_operands = 2;
  op.attributes = {ops::reduction_attribute()};
  op.types = ops::elementwise_loss_types;
  op.body = [](Graph& graph, std::span<const Value> operands, const Attributes& attributes) {
    ops::Build b(graph);
    const Value difference = b.sub(b.widen(operands[0]), b.widen(operands[1]));
    return std::vector<Value>{ops::reduce_loss(b, b.mul(difference, difference), attributes)};
  };
  op.samples = ops::elementwise_loss_samples();
  return op;
}
