#include <numeric>

#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

bool is_permutation_of_axes(const std::vector<int64_t>& permutation, int rank) {
  std::vector<int> seen(rank);
  for (int64_t axis : permutation)
    if (axis < 0 || axis >= rank || seen[axis]++) return false;
  return static_cast<int>(permutation.size()) == rank;
}

}  // namespace

MILLRACE_OPERATOR(transpose) {
  Operator op;
  op.name = "transpose";
  op.op_class = OpClass::movement;
  op.doc = "Axes reordered: axis d of the result is axis permutation[d] of the operand.";
  op.attributes = {{"permutation",
                    AttributeType::integers,
                    "for each axis of the result, the operand's axis",
                    {.low = 0}}};
  op.types = [](const TypeContext& c) {
    const std::vector<int64_t>& permutation = c.attributes.ints("permutation");
    const Shape& from = c.operands[0].shape;
    if (!is_permutation_of_axes(permutation, from.rank()))
      c.error("permutation must name each of the operand's axes once");
    Shape to;
    for (int64_t axis : permutation) to.push_back(from[axis]);
    return std::vector<Type>{{c.operands[0].dtype, to}};
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const std::vector<int64_t>& permutation = c.node.attributes.ints("permutation");
    std::vector<Scalar> at(index.size());
    for (size_t d = 0; d < index.size(); ++d) at[permutation[d]] = index[d];
    return b.load(0, at);
  };
  op.gradient = [](const GradientContext& c) {
    const std::vector<int64_t>& permutation = c.node.attributes.ints("permutation");
    std::vector<int64_t> inverse(permutation.size());
    for (size_t d = 0; d < permutation.size(); ++d) inverse[permutation[d]] = static_cast<int64_t>(d);
    return std::vector<Value>{ops::Build(c.graph).transpose(c.result_gradients[0], inverse)};
  };
  const auto sample = [&](DType dtype, const Shape& shape, std::vector<int64_t> permutation) {
    op.samples.push_back(
        {.operands = {{dtype, shape}}, .attributes = {{"permutation", std::move(permutation)}}});
  };
  for (const DType dtype : all_dtypes()) sample(dtype, {3, 17}, {1, 0});
  sample(f32, {2, 3, 5, 7}, {0, 2, 3, 1});
  sample(f64, {2, 3, 5}, {2, 0, 1});
  sample(f32, {33, 1, 18}, {2, 1, 0});
  sample(f32, {4, 0}, {1, 0});
  sample(f32, {}, {});
  op.permutation = [](const Node& node) { return node.attributes.ints("permutation"); };
  op.stack = [](const StackContext& c) {
    std::vector<int64_t> permutation{0};
    for (const int64_t axis : c.node.attributes.ints("permutation")) permutation.push_back(axis + 1);
    return c.graph.add(*c.node.op, {c.stack(0)}, {{"permutation", permutation}});
  };
  op.onnx = {"Transpose"};
  op.onnx_rule = [](const OnnxCall& c) {
    return c.one("Transpose", c.operands, {{"perm", c.attributes().ints("permutation")}});
  };
  return op;
}
