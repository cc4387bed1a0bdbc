#include <millrace/onnx_rule.h>

#include "base/format.h"
#include "ops/build.h"
#include "ops/registry.h"
#include "ops/rows.h"

using namespace millrace;

namespace {

std::vector<std::string> onnx_reshape(const OnnxCall& c) {
  const Shape& shape = c.attributes().shape("shape");
  std::vector<int64_t> sizes;
  int named = 0;
  bool empty = false;
  for (const Dim& dim : shape) {
    named += !dim.is_static();
    empty |= dim.is_static() && dim.size() == 0;
    sizes.push_back(dim.is_static() ? dim.size() : -1);
  }
  const std::string target = named == 1 && !empty ? c.onnx.ints(sizes) : c.onnx.shape_of(shape);
  constexpr int allowzero_since = 14;
  if (c.onnx.opset() < allowzero_since) {
    if (empty)
      fail<InputError>("Reshape to {}, which is empty, needs opset {}, and {} is asked for", shape.str(),
                       allowzero_since, c.onnx.opset());
    return c.one("Reshape", {c.operands[0], target});
  }
  return c.one("Reshape", {c.operands[0], target}, {{"allowzero", int64_t{empty}}});
}

/// Where as many elements stand before it as before.
int kept_by_reshape(const Node& node, std::span<const Type> operands, int /*operand*/, int axis) {
  const Shape &from = operands[0].shape, &to = node.types[0].shape;
  if (!from.is_static() || !to.is_static()) return -1;
  int64_t before = 1, passed = 1;
  for (int d = 0; d < axis; ++d) before *= from[d].size();
  for (int d = 0; d < to.rank() && passed <= before; ++d) {
    if (passed == before && to[d] == from[axis]) return d;
    passed *= to[d].size();
  }
  return -1;
}

}  // namespace

MILLRACE_OPERATOR(reshape) {
  Operator op;
  op.name = "reshape";
  op.op_class = OpClass::view;
  op.doc = "The same elements in row-major order under another shape.";
  op.attributes = {{"shape", AttributeType::shape, "the result's shape"}};
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
  op.stack = [](const StackContext& c) {
    const Value x = c.stack(0);
    return ops::Build(c.graph).reshape(x, c.of_steps(c.node.types[0].shape));
  };
  op.keeps_axis = kept_by_reshape;
  op.set_axis = ops::set_size_in_shape;
  op.onnx = {"Reshape"};
  op.onnx_rule = onnx_reshape;
  return op;
}
