// Layers of weights with nothing between them that bends.
#include <algorithm>
#include <vector>

#include <millrace/operator.h>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"

namespace millrace::check {
namespace {

/// Of a value: does it depend on the data, by how many products with weights in a row, and has anything
/// behind the first of these bent it?
struct Path {
  bool data = false, bent = false;
  int products = 0;
};

bool is_operator(const Node& node, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return node.op == find_operator(name); });
}

/// Does its result follow straight lines where one of its operands does and the others stay as they are?
bool is_straight(const Node& node) {
  switch (node.op->op_class) {
    case OpClass::view:
    case OpClass::movement:
      return !is_operator(node, {"max_pool2d", "gather", "one_hot"});
    default:
      break;
  }
  return node.op->converts || is_operator(node, {"add", "sub", "neg", "mul", "div", "sum", "mean", "matmul",
                                                 "conv2d", "batch_norm_inference", "avg_pool2d", "copy"});
}

Path path_of(const Node& node, const std::vector<Path>& paths) {
  Path path;
  int from_data = 0;
  bool first = true;
  for (const Value& operand : node.operands) {
    const Path& one = paths[static_cast<size_t>(operand.node)];
    if (one.data) {
      path.data = true;
      path.bent = path.bent || one.bent;
      path.products = std::max(path.products, one.products);
      ++from_data;
      // A quotient by what depends on the data is no straight line.
      if (!first && is_operator(node, {"div"})) from_data = 2;
    }
    first = false;
  }
  if (!path.data) return path;
  const bool joins = is_operator(node, {"add", "sub", "concat"});
  const bool product = is_operator(node, {"matmul", "conv2d"});
  if (path.products > 0 && (!is_straight(node) || (from_data > 1 && !joins))) path.bent = true;
  if (product && from_data == 1) ++path.products;
  return path;
}

Finding run_linear_layers(Context& context) {
  if (context.task() && context.task()->recipe.train.lora > 0)
    return not_for("adapters are two products by design");
  (void)context.outputs(context.given(context.batch()));
  const Graph& graph = context.evaluation_graph();
  const size_t given = context.given(context.batch()).size();
  std::vector<Path> paths(static_cast<size_t>(graph.size()));
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (!node.op->is_given()) paths[static_cast<size_t>(i)] = path_of(node, paths);
    for (size_t k = 0; k < given; ++k)
      if (graph.inputs()[k].node == i) paths[static_cast<size_t>(i)].data = true;
  }
  int products = 0;
  for (const Value& output : graph.outputs()) {
    const Path& path = paths[static_cast<size_t>(output.node)];
    if (path.data && !path.bent) products = std::max(products, path.products);
  }
  Finding finding =
      products >= 2
          ? warned(fmt::format("{} layers of weights follow each other and nothing bends between them: "
                               "together they are one linear layer",
                               products),
                   "put an activation (relu, gelu) behind each layer but the last one")
          : passed(products == 1 ? "the model is linear, by one layer of weights"
                                 : "what comes between layers of weights bends");
  finding.numbers = {{"layers", static_cast<double>(products)}};
  return finding;
}

}  // namespace

MILLRACE_CHECK_KIND(linear_layers){
    .name = "linear-layers",
    .group = "model",
    .doc = "layers of weights with no activation between them",
    .matters =
        "the product of two matrices is a matrix: such a model is as deep as one layer, and learns no "
        "more than it",
    .place = 225,
    .run = run_linear_layers,
};

}  // namespace millrace::check
