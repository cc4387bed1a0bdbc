#include <algorithm>
#include <optional>
#include <vector>

#include <millrace/operator.h>

#include "base/contains.h"
#include "ir/values.h"
#include "ops/build.h"
#include "passes/pass.h"

namespace millrace {
namespace {

/// The value that `value` is a rounded copy of: behind casts between floats.
std::optional<Value> before_rounding(const Graph& body, Value value) {
  std::optional<Value> found;
  for (const Node* node = &body.node(value); node->op->converts; node = &body.node(node->operands[0])) {
    if (!node->types[0].dtype.is_float() || !body.type(node->operands[0]).dtype.is_float()) break;
    found = node->operands[0];
  }
  return found;
}

/// The result of a loop that is result r rounded, of all steps; −1: there is none.
int rounded_twin(const Node& loop, size_t r) {
  const Graph& body = *loop.body;
  const auto stacked = [&](size_t k) {
    return loop.types[k].shape.rank() > body.type(body.outputs()[k]).shape.rank();
  };
  if (!stacked(r) || loop.types[r].dtype != f32) return -1;
  for (size_t k = 0; k < loop.types.size(); ++k)
    if (k != r && stacked(k) && before_rounding(body, body.outputs()[k]) == body.outputs()[r])
      return static_cast<int>(k);
  return -1;
}

}  // namespace

// In mixed precision a backward loop leaves gradients rounded, for products, and as they were, for sums (of
// biases): the sums take the rounded ones too, as they do where such gradients are bf16 throughout, and
// memory holds them once.
static Graph sum_rounded(const Graph& graph, const PassContext& context) {
  if (context.precision == "fp32") return graph;
  const std::vector<std::vector<int>> users = users_of(graph);
  const auto only_summed = [&](Value value) {
    return !contains(graph.outputs(), value) &&
           std::all_of(users[value.node].begin(), users[value.node].end(), [&](int u) {
             return graph.node(u).op->is(Reduction::sum) || !contains(graph.node(u).operands, value);
           });
  };
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    if (node.op->op_class != OpClass::loop) return false;
    rewrite.copy(i);
    for (size_t r = 0; r < node.types.size(); ++r) {
      const Value value{i, static_cast<int32_t>(r)};
      const int twin = rounded_twin(node, r);
      if (twin < 0 || !only_summed(value)) continue;
      rewrite.set(value, ops::Build(rewrite.graph()).cast(rewrite[{i, twin}], f32));
    }
    return true;
  });
  return rewrite.finish();
}

MILLRACE_PASS(sum_rounded){.name = "sum-rounded",
                           .doc = "bf16: sums of gradients of a loop take the rounded ones, as products do",
                           .place = 140,
                           .run = sum_rounded};

}  // namespace millrace
