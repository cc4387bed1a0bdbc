// Layers of weights with nothing between them that bends.
#include <algorithm>
#include <vector>

#include <millrace/operator.h>

#include "autodiff/gradient.h"
#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "ir/alone.h"
#include "ops/body.h"

namespace millrace::check {
namespace {

/// Of a value: does it depend on the data, by how many products with weights in a row, and has anything
/// behind the first of these bent it?
struct Path {
  bool data = false, bent = false;
  int products = 0;
};

/// Does the result follow straight lines where the operands that are `moving` do, all at once, while the
/// others stay? It does where its gradients are the same wherever these operands are. (Of what jumps, as rem
/// does, this is not true, but it bends nothing that could be learnt.) What has no gradient is not straight.
bool is_straight(const Graph& graph, const Node& node, const std::vector<bool>& moving) {
  if (!node.op->differentiable) return false;
  Graph one = alone(graph, node);
  const std::vector<Value> inputs = one.inputs(), results = one.outputs();
  std::vector<Value> wrt, outputs, seeds;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (moving[i]) {
      if (!one.type(inputs[i]).dtype.is_float()) return false;
      wrt.push_back(inputs[i]);
    }
  for (const Value& result : results)
    if (one.type(result).dtype.is_float()) {
      outputs.push_back(result);
      seeds.push_back(one.input(fmt::format("g{}", seeds.size()), one.type(result)));
    }
  if (outputs.empty()) return false;
  std::vector<Value> found;
  try {
    found = gradients(one, outputs, seeds, wrt);
  } catch (const TypeError&) {
    return false;
  }
  const std::vector<char> moves = ops::reached_from(one, wrt);
  return std::none_of(found.begin(), found.end(),
                      [&](const Value& value) { return moves[static_cast<size_t>(value.node)]; });
}

Path path_of(const Graph& graph, const Node& node, const std::vector<Path>& paths) {
  Path path;
  std::vector<bool> moving;
  for (const Value& operand : node.operands) {
    const Path& one = paths[static_cast<size_t>(operand.node)];
    moving.push_back(one.data);
    if (!one.data) continue;
    path.data = true;
    path.bent = path.bent || one.bent;
    path.products = std::max(path.products, one.products);
  }
  if (!path.data) return path;
  if (path.products > 0 && !path.bent) path.bent = !is_straight(graph, node, moving);
  // Products and convolutions: with weights, where the other operand stays.
  if (arithmetic_of(*node.op) == Arithmetic::narrow && std::count(moving.begin(), moving.end(), true) == 1)
    ++path.products;
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
    if (!node.op->is_given()) paths[static_cast<size_t>(i)] = path_of(graph, node, paths);
    for (size_t k = 0; k < given; ++k)
      if (graph.inputs()[k].node == i) paths[static_cast<size_t>(i)].data = true;
  }
  int products = 0;
  for (const Value& output : graph.outputs()) {
    const Path& path = paths[static_cast<size_t>(output.node)];
    if (path.data && !path.bent) products = std::max(products, path.products);
  }
  return with_numbers(
      products >= 2
          ? warned(fmt::format("{} layers of weights follow each other and nothing bends between them: "
                               "together they are one linear layer",
                               products),
                   "put an activation (relu, gelu) behind each layer but the last one")
          : passed(products == 1 ? "the model is linear, by one layer of weights"
                                 : "what comes between layers of weights bends"),
      {{"layers", products}});
}

}  // namespace

MILLRACE_CHECK_KIND(linear_layers){
    .name = "linear-layers",
    .doc = "layers of weights with no activation between them",
    .matters =
        "the product of two matrices is a matrix: such a model is as deep as one layer, and learns no "
        "more than it",
    .place = 225,
    .run = run_linear_layers,
};

}  // namespace millrace::check
