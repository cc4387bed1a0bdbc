#include "ops/build.h"
#include "ops/registry.h"
#include "ops/rows.h"

using namespace millrace;

MILLRACE_OPERATOR(broadcast) {
  Operator op;
  op.name = "broadcast";
  op.op_class = OpClass::movement;
  op.doc = "The operand repeated to `shape` by numpy's rule (aligned at the last dimension).";
  op.attributes = {{"shape", AttributeType::shape, "the result's shape"}};
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
  op.repeat = Repeat::free;
  op.broadcasts = true;
  op.stack = [](const StackContext& c) {
    // Dimensions of size 1 where the operand has fewer.
    ops::Build b(c.graph);
    const Shape& to = c.node.types[0].shape;
    Shape from = c.types[0].shape;
    from.insert(from.begin(), to.size() - from.size(), Dim(1));
    const Value x = c.stack(0);
    return b.broadcast(b.reshape(x, c.of_steps(from)), c.of_steps(to));
  };
  op.keeps_axis = [](const Node& node, std::span<const Type> operands, int, int axis) {
    const Shape &from = operands[0].shape, &to = node.types[0].shape;
    const int at = axis + to.rank() - from.rank();
    return to[at] == from[axis] ? at : -1;
  };
  op.set_axis = ops::set_size_in_shape;
  op.onnx = {"Expand"};
  return op;
}
