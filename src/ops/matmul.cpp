#include "ops/matmul.h"

#include <algorithm>

#include <millrace/onnx_rule.h>

#include "base/format.h"
#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> matmul_types(const TypeContext& c) {
  const Type &a = c.operands[0], &b = c.operands[1];
  if (a.dtype != b.dtype) c.error("both operands must have the same dtype");
  if (!a.dtype.is_float()) c.error("dtype is not supported; cast to a float type");
  const int rank = a.shape.rank();
  if (rank < 2 || b.shape.rank() < 2) c.error("both operands need at least two dimensions");
  if (rank != b.shape.rank() || !std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin()))
    c.error("the dimensions before the last two must be equal");
  const bool transpose_a = c.attributes.flag("transpose_a"), transpose_b = c.attributes.flag("transpose_b");
  const Dim inner_a = a.shape[rank - (transpose_a ? 2 : 1)], inner_b = b.shape[rank - (transpose_b ? 1 : 2)];
  if (inner_a != inner_b)
    c.error(fmt::format("rows of the left{} have {} elements, columns of the right{} have {}",
                        transpose_a ? " (transposed)" : "", inner_a.str(), transpose_b ? " (transposed)" : "",
                        inner_b.str()));
  Shape shape = a.shape;
  shape[rank - 2] = a.shape[rank - (transpose_a ? 1 : 2)];
  shape[rank - 1] = b.shape[rank - (transpose_b ? 2 : 1)];
  return {{a.dtype, shape}};
}

/// Of two stacks as many products; of a stack and one matrix one product of the rows of all steps.
Value stacked_product(const StackContext& c) {
  ops::Build b(c.graph);
  const bool ta = c.node.attributes.flag("transpose_a"), tb = c.node.attributes.flag("transpose_b");
  const Value left = c.value(0), right = c.value(1);
  if (c.stacked[1]) return b.matmul(left, right, ta, tb);
  const Shape from = b.shape(left);
  const Value rows = b.matmul(b.reshape(left, {from[0] * from[1], from[2]}), right, false, tb);
  return b.reshape(rows, c.of_steps(c.node.types[0].shape));
}

std::vector<std::string> as_gemm(const OnnxCall& c) {
  std::vector<std::string> operands = c.operands;
  const bool flags[] = {c.attributes().flag("transpose_a"), c.attributes().flag("transpose_b")};
  if (c.types[0].shape.rank() == 2 && c.types[1].shape.rank() == 2)
    return c.one("Gemm", operands, {{"transA", int64_t{flags[0]}}, {"transB", int64_t{flags[1]}}});
  for (int i = 0; i < 2; ++i) {
    if (!flags[i]) continue;
    std::vector<int64_t> swapped(c.types[i].shape.size());
    for (size_t axis = 0; axis < swapped.size(); ++axis) swapped[axis] = static_cast<int64_t>(axis);
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    operands[i] = c.onnx.node("Transpose", {operands[i]}, {{"perm", swapped}});
  }
  return c.one("MatMul", operands);
}

}  // namespace

MILLRACE_OPERATOR(matmul) {
  Operator op;
  op.name = "matmul";
  op.op_class = OpClass::heavy;
  op.doc = "Matrix product over the last two dimensions; those before them are equal and count matrices.";
  op.min_operands = op.max_operands = 2;
  op.attributes = {{"transpose_a", Attribute(false), "the left matrices are stored transposed"},
                   {"transpose_b", Attribute(false), "the right matrices are stored transposed"}};
  op.types = matmul_types;
  op.gradient = [](const GradientContext& c) {
    ops::Build build(c.graph);
    const bool ta = c.node.attributes.flag("transpose_a"), tb = c.node.attributes.flag("transpose_b");
    const Value a = c.operands[0], b = c.operands[1], g = c.result_gradients[0];
    return std::vector<Value>{ta ? build.matmul(b, g, tb, true) : build.matmul(g, b, false, !tb),
                              tb ? build.matmul(g, a, true, ta) : build.matmul(a, g, !ta, false)};
  };
  op.flops = [](const Graph& graph, const Node& node) {
    const Shape& a = graph.type(node.operands[0]).shape;
    const Dim inner = a[a.rank() - (node.attributes.flag("transpose_a") ? 2 : 1)];
    return 2.0 * static_cast<double>(node.types[0].shape.count()) * static_cast<double>(inner.size());
  };
  op.arithmetic = Arithmetic::narrow;
  op.can_stack = [](const Node& node, std::span<const Type> types, std::span<const char> stacked) {
    if (stacked[0] && stacked[1]) return true;
    return stacked[0] && types[0].shape.rank() == 2 && !node.attributes.flag("transpose_a");
  };
  op.stack = stacked_product;
  op.keeps_axis = [](const Node& node, std::span<const Type> operands, int operand, int axis) {
    const int rank = operands[0].shape.rank();
    if (axis < rank - 2) return axis;
    const bool transposed = node.attributes.flag(operand == 0 ? "transpose_a" : "transpose_b");
    const int outer = (operand == 0) != transposed ? rank - 2 : rank - 1;  // the other one is summed over
    return axis == outer ? rank - 2 + operand : -1;
  };
  op.onnx = {"MatMul", "Gemm"};
  op.onnx_rule = as_gemm;
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  const auto sample = [&](DType dtype, Shape a, Shape b, bool ta, bool tb) {
    op.samples.push_back({.operands = {{dtype, std::move(a)}, {dtype, std::move(b)}},
                          .attributes = {{"transpose_a", ta}, {"transpose_b", tb}}});
  };
  sample(f32, {7, 33}, {33, 19}, false, false);
  sample(f32, {33, 7}, {33, 19}, true, false);
  sample(f32, {2, 3, 5, 8}, {2, 3, 6, 8}, false, true);
  sample(f32, {4, 8, 5}, {4, 6, 8}, true, true);
  sample(f32, {1, 1}, {1, 1}, false, false);
  sample(f32, {0, 4}, {4, 3}, false, false);
  sample(f32, {3, 0}, {0, 4}, false, false);
  sample(f64, {3, 4}, {4, 2}, false, false);
  sample(f64, {2, 4, 3}, {2, 2, 4}, true, true);
  sample(f64, {4, 3}, {4, 2}, true, false);
  sample(f64, {3, 4}, {2, 4}, false, true);
  for (const DType dtype : {bf16, f16}) {
    sample(dtype, {9, 16}, {16, 5}, false, false);
    sample(dtype, {2, 4, 16}, {2, 3, 16}, false, true);
  }
  return op;
}

std::optional<ops::Matmul> ops::matmul_of(const Node& node) {
  if (node.op != &op_matmul()) return std::nullopt;
  return Matmul{node.attributes.flag("transpose_a"), node.attributes.flag("transpose_b")};
}
