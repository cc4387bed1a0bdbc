#include "autodiff/cond_gradient.h"

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
  // One of each branch: the gradients of the inputs that are floats, some of which are zero everywhere.
  std::vector<Graph> branches;
  std::vector<char> flows;
  for (const bool first : {true, false}) {
    Graph branch = ops::branch_of(*node.body, first);
    const std::vector<Value> inputs = branch.inputs();
    std::vector<Value> outputs, seeds, wrt;
    for (size_t r = 0; r < result_gradients.size(); ++r)
      if (result_gradients[r].valid()) {
        outputs.push_back(branch.outputs()[r]);
        seeds.push_back(branch.input(fmt::format("d{}", r), node.types[r]));
      }
    for (const Value& input : inputs)
      if (branch.type(input).dtype.is_float()) wrt.push_back(input);
    const std::vector<Value> found = gradients(branch, outputs, seeds, wrt);
    flows.resize(found.size(), 0);
    for (size_t k = 0; k < found.size(); ++k)
      if (!ops::is_filled_with(branch, found[k], 0)) flows[k] = 1;
    branch.set_outputs(found);
    branches.push_back(std::move(branch));
  }
  std::vector<Value> parts(operands.size());
  for (Graph& branch : branches) {
    std::vector<Value> kept;
    for (size_t k = 0; k < flows.size(); ++k)
      if (flows[k]) kept.push_back(branch.outputs()[k]);
    if (kept.empty()) return parts;
    branch.set_outputs(kept);
  }
  Value next = ops::add_cond(graph, operands[0], all,
                             std::make_shared<const Graph>(ops::join_branches(branches[0], branches[1])));
  size_t k = 0;
  for (size_t i = 1; i < operands.size(); ++i) {
    if (!graph.type(operands[i]).dtype.is_float() || !flows[k++]) continue;
    parts[i] = next;
    ++next.output;
  }
  return parts;
}

}  // namespace millrace
