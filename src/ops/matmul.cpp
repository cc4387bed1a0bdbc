#include <algorithm>

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
  op.onnx = {"MatMul", "Gemm"};
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
