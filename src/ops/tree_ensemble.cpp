#include <millrace/onnx_rule.h>

#include "ops/registry.h"
#include "ops/trees.h"

using namespace millrace;

namespace {

enum TreeOperand { rows_of, columns, thresholds, lefts, missing, roots, base };

std::vector<Type> tree_types(const TypeContext& c) {
  const auto& x = c.operands;
  if (x[rows_of].dtype != f32 || x[rows_of].shape.rank() != 2 || !x[rows_of].shape[1].is_static())
    c.error("the rows must be f32 [rows, columns]");
  const Type of_nodes[] = {
      {i32, x[columns].shape}, {f32, x[columns].shape}, {i32, x[columns].shape}, {boolean, x[columns].shape}};
  for (size_t i = 0; i < 4; ++i)
    if (x[columns + i] != of_nodes[i] || x[columns].shape.rank() != 1)
      c.error("nodes are columns i32, thresholds f32, left children i32 and missing bool, all [nodes]");
  if (x[roots].dtype != i32 || x[roots].shape.rank() != 1) c.error("the roots must be i32 [trees]");
  if (x[base].dtype != f32 || x[base].shape.rank() != 1 || x[base].shape[0] == Dim(0))
    c.error("the base must be f32 [width]");
  return {{f32, {x[rows_of].shape[0], x[base].shape[0]}}};
}

/// Two trees for each of two outputs: of one split, of none, of three, and one that is cut off.
Sample few_trees(int64_t rows, int64_t width) {
  Sample s;
  s.operands = {{f32, {rows, 3}}, {i32, {13}}, {f32, {13}},   {i32, {13}},
                {boolean, {13}},  {i32, {4}},  {f32, {width}}};
  s.values = {{1, {0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 7}},
              {2, {.5, -1, 1, .25, -.5, .75, 0, 2, 3, 4, .125, 8, 9}},
              {3, {1, 0, 0, 0, 5, 7, 9, 0, 0, 0, 0, 0, 12}},
              {4, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}},
              {5, {0, 3, 4, 12}}};
  return s;
}

}  // namespace

MILLRACE_OPERATOR(tree_ensemble) {
  Operator op;
  op.name = "tree_ensemble";
  op.op_class = OpClass::heavy;
  op.doc =
      "Sums of decision trees over f32 [rows, columns]: `base` [width], plus of each tree t the leaf that a "
      "row "
      "falls into, added to output t mod width, in the order of the trees. The nodes of all trees are in "
      "four "
      "arrays, and `roots` says where each tree begins. From a node a row goes to `left` where its value in "
      "`column` is less than `threshold`, else to left + 1; a NaN goes left where `missing` says so. "
      "Children "
      "come after their parent: a node whose left is not behind it is a leaf, and its threshold is its "
      "value.";
  op.min_operands = op.max_operands = 7;
  op.types = tree_types;
  op.differentiable = false;
  op.errors = ErrorGrowth::decisive;
  op.flops = [](const Graph& graph, const Node& node) {
    return static_cast<double>(graph.type(node.operands[rows_of]).shape[0].size() *
                               graph.type(node.operands[roots]).shape.count());
  };
  op.samples = {few_trees(5, 2), few_trees(1, 1), few_trees(70, 4), few_trees(0, 1), few_trees(301, 3)};
  op.onnx = {"ai.onnx.ml.TreeEnsembleRegressor"};
  op.onnx_rule = ops::trees_as_onnx;
  return op;
}
