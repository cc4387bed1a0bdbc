#include <millrace/operator.h>

#include "autodiff/gradient.h"
#include "base/format.h"
#include "ops/cond.h"
#include "ops/filled.h"

namespace millrace {

std::vector<Value> cond_gradient(Graph& graph, const Node& node, std::span<const Value> operands,
                                 std::span<const Value> result_gradients) {
  std::vector<Value> all(operands.begin() + 1, operands.end());
  for (const Value& gradient : result_gradients)
    if (gradient.valid()) all.push_back(gradient);
  // Of each branch the gradients of its inputs, some of which are zero everywhere.
  std::vector<Graph> branches;
  std::vector<std::vector<Value>> found;
  std::vector<char> flows(operands.size() - 1, 0);
  for (const bool first : {true, false}) {
    Graph branch = ops::branch_of(*node.body, first);
    const std::vector<Value> inputs = branch.inputs();
    std::vector<Value> outputs, seeds;
    for (size_t r = 0; r < result_gradients.size(); ++r)
      if (result_gradients[r].valid()) {
        outputs.push_back(branch.outputs()[r]);
        seeds.push_back(branch.input(fmt::format("d{}", r), node.types[r]));
      }
    const std::vector<Value>& own = found.emplace_back(partial_gradients(branch, outputs, seeds, inputs));
    for (size_t k = 0; k < own.size(); ++k)
      if (own[k].valid() && !ops::is_filled_with(branch, own[k], 0)) flows[k] = 1;
    branches.push_back(std::move(branch));
  }
  std::vector<Value> parts(operands.size());
  for (size_t i = 0; i < branches.size(); ++i) {
    std::vector<Value> kept;
    for (size_t k = 0; k < flows.size(); ++k)
      if (flows[k]) kept.push_back(found[i][k]);
    if (kept.empty()) return parts;
    branches[i].set_outputs(kept);
  }
  Value next = ops::add_cond(graph, operands[0], all,
                             std::make_shared<const Graph>(ops::join_branches(branches[0], branches[1])));
  for (size_t k = 0; k < flows.size(); ++k) {
    if (!flows[k]) continue;
    parts[k + 1] = next;
    ++next.output;
  }
  return parts;
}

}  // namespace millrace
