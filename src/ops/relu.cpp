#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(relu) {
  Operator op;
  op.name = "relu";
  op.op_class = OpClass::composite;
  op.doc = "max(x, 0); NaN stays NaN.";
  op.types = [](const TypeContext& c) {
    if (!c.operands[0].dtype.is_float()) c.error("dtype is not supported");
    return std::vector<Type>{c.operands[0]};
  };
  op.body = [](Graph& graph, std::span<const Value> x, const Attributes&) {
    ops::Build b(graph);
    // Not max(x, 0): the gradient at 0 is 0, as every framework has it. Not x > 0 ? x : 0: NaN must stay NaN.
    return std::vector<Value>{b.select(b.binary("less_equal", x[0], b.zeros(x[0])), b.zeros(x[0]), x[0])};
  };
  // By the result, which the next layer keeps anyway, so that the operand need not be stored.
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0], zero = b.zeros(g);
    return std::vector<Value>{b.select(b.binary("less_equal", c.results[0], b.zeros(c.results[0])), zero, g)};
  };
  op.samples = {{.operands = {{f32, {3, 17}}}}, {.operands = {{f64, {5}}}}, {.operands = {{bf16, {2, 9}}}},
                {.operands = {{f16, {1}}}},     {.operands = {{f32, {}}}},  {.operands = {{f32, {0, 3}}}}};
  op.lowest = 0;
  op.onnx = {"Relu"};
  return op;
}
