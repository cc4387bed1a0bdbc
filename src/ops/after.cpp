#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(after) {
  Operator op;
  op.name = "after";
  op.op_class = OpClass::view;
  op.doc =
      "The first operand, once all others are computed: an order of work that no data asks for, but memory "
      "does.";
  op.max_operands = -1;
  op.types = [](const TypeContext& c) { return std::vector<Type>{c.operands[0]}; };
  op.gradient = [](const GradientContext& c) {
    std::vector<Value> gradients(c.operands.size());
    gradients[0] = c.result_gradients[0];
    return gradients;
  };
  for (const DType dtype : all_dtypes()) op.samples.push_back({.operands = {{dtype, {3, 5}}, {f32, {7}}}});
  op.samples.push_back({.operands = {{f64, {}}, {f64, {0, 2}}, {f64, {1}}}});
  op.samples.push_back({.operands = {{f64, {0}}}});
  return op;
}
