#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(reshape) {
  Operator op;
  op.name = "reshape";
  op.op_class = OpClass::view;
  op.doc = "The same elements in row-major order under another shape.";
  op.attributes = {{"shape", std::nullopt, "the result's shape"}};
  op.types = [](const TypeContext& c) {
    const Shape& to = c.attributes.shape("shape");
    if (to.elements() != c.operands[0].shape.elements()) c.error("cannot be reshaped to " + to.str());
    return std::vector<Type>{{c.operands[0].dtype, to}};
  };
  op.gradient = [](const GradientContext& c) {
    return std::vector<Value>{
        ops::Build(c.graph).reshape(c.result_gradients[0], c.type(c.operands[0]).shape)};
  };
  op.samples = {{.operands = {{f32, {2, 6}}}, .attributes = {{"shape", Shape{3, 4}}}},
                {.operands = {{f64, {1}}}, .attributes = {{"shape", Shape{}}}},
                {.operands = {{i8, {0, 4}}}, .attributes = {{"shape", Shape{2, 0}}}}};
  for (const DType dtype : all_dtypes())
    op.samples.push_back({.operands = {{dtype, {3, 5}}}, .attributes = {{"shape", Shape{15}}}});
  op.onnx = {"Reshape"};
  return op;
}
