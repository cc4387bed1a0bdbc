#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(broadcast) {
  Operator op;
  op.name = "broadcast";
  op.op_class = OpClass::movement;
  op.doc = "The operand repeated to `shape` by numpy's rule (aligned at the last dimension).";
  op.attributes = {{"shape", std::nullopt, "the result's shape"}};
  op.types = [](const TypeContext& c) {
    const Shape& to = c.attributes.shape("shape");
    if (broadcast_shapes(c.operands[0].shape, to) != to) c.error("cannot be broadcast to " + to.str());
    return std::vector<Type>{{c.operands[0].dtype, to}};
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    // The operand has the trailing dimensions; those of size 1 stand still.
    const Shape& from = c.operands[0].shape;
    std::vector<Scalar> at(index.end() - from.rank(), index.end());
    for (int d = 0; d < from.rank(); ++d)
      if (from[d] == 1) at[d] = b.integer(i64, 0);
    return b.load(0, at);
  };
  op.gradient = [](const GradientContext& c) {
    return std::vector<Value>{ops::Build(c.graph).sum_to(c.result_gradients[0], c.type(c.operands[0]).shape)};
  };
  op.samples = {{.operands = {{f32, {}}}, .attributes = {{"shape", Shape{3, 2}}}},
                {.operands = {{f64, {3, 1, 5}}}, .attributes = {{"shape", Shape{2, 3, 4, 5}}}},
                {.operands = {{i64, {1}}}, .attributes = {{"shape", Shape{0}}}},
                {.operands = {{bf16, {7}}}, .attributes = {{"shape", Shape{5, 7}}}}};
  for (const DType dtype : all_dtypes())
    op.samples.push_back({.operands = {{dtype, {3, 1}}}, .attributes = {{"shape", Shape{3, 17}}}});
  op.onnx = {"Expand"};
  return op;
}
