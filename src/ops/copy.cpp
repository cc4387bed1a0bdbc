#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(copy) {
  Operator op = ops::elementwise_unary(
      "copy", "The operand itself; made by passes where memory or layout must change", all_dtypes());
  op.scalar = [](ScalarBuilder&, std::span<const Scalar> x, const Node&) { return x[0]; };
  op.gradient = [](const GradientContext& c) { return std::vector<Value>{c.result_gradients[0]}; };
  op.onnx = {"Identity"};
  return op;
}
