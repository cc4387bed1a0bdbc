#include "autodiff/gradient.h"

#include <map>

#include <millrace/operator.h>

#include "base/contains.h"
#include "base/format.h"
#include "ops/build.h"

namespace millrace {
namespace {

/// The gradient of a composite without a rule: its body is appended, differentiated, and the part that
/// computes only the forward values again is left to common-subexpression elimination.
std::vector<Value> body_gradient(Graph& graph, const Node& node, std::span<const Value> operands,
                                 std::span<const Value> result_gradients) {
  const std::vector<Value> results = inline_graph(graph, *node.body, operands);
  std::vector<Value> outputs, seeds;
  for (size_t r = 0; r < results.size(); ++r) {
    if (!result_gradients[r].valid()) continue;
    outputs.push_back(results[r]);
    seeds.push_back(result_gradients[r]);
  }
  return partial_gradients(graph, outputs, seeds, operands);
}

/// `partial`: the values of `wrt` are taken as independent of each other. Else gradients flow on through
/// those that are computed from others.
std::vector<Value> flow_back(Graph& graph, std::span<const Value> outputs, std::span<const Value> seeds,
                             std::span<const Value> wrt, bool partial) {
  ops::Build build(graph);
  const Origin outer = graph.origin();
  // Which nodes depend on a value of `wrt`: only through them gradients need to flow.
  const int end = graph.size();
  std::vector<char> depends(end, 0);
  for (const Value& value : wrt) depends[value.node] = 1;
  for (int i = 0; i < end; ++i)
    for (const Value& operand : graph.node(i).operands)
      if (depends[operand.node] && graph.node(i).op->differentiable) depends[i] = 1;

  std::map<Value, Value> gradient;  // forward value → sum of what has arrived
  const auto accumulate = [&](Value value, Value part) {
    if (!part.valid()) return;
    MILLRACE_CHECK(graph.type(part) == graph.type(value), "gradient of type {} for a value of type {} ({})",
                   graph.type(part).str(), graph.type(value).str(), graph.node(value).op->name);
    const auto [it, first] = gradient.try_emplace(value, part);
    if (!first) it->second = build.add(it->second, part);
  };
  for (size_t i = 0; i < outputs.size(); ++i) accumulate(outputs[i], seeds[i]);

  std::vector<char> stop(end, 0);
  for (const Value& value : wrt)
    if (partial || graph.is_input(value)) stop[value.node] = 1;
  for (int i = end - 1; i >= 0; --i) {
    if (!depends[i] || stop[i]) continue;
    const Node node = graph.node(i);  // a copy: the graph grows below
    if (node.operands.empty()) continue;
    std::vector<Value> results, arrived;
    bool any = false;
    for (size_t r = 0; r < node.types.size(); ++r) {
      results.push_back({i, static_cast<int32_t>(r)});
      const auto it = gradient.find(results.back());
      arrived.push_back(it == gradient.end() ? Value{} : it->second);
      any = any || arrived.back().valid();
    }
    if (!any) continue;
    graph.set_origin(node.origin.in_phase(Phase::backward));
    std::vector<Value> parts;
    if (node.op->gradient)
      parts = node.op->gradient({graph, node, node.operands, results, arrived});
    else if (node.op->op_class == OpClass::loop)
      parts = scan_gradient(graph, node, node.operands, arrived);
    else if (node.op->op_class == OpClass::branch)
      parts = cond_gradient(graph, node, node.operands, arrived);
    else if (node.body)
      parts = body_gradient(graph, node, node.operands, arrived);
    else
      fail<TypeError>("{} has no gradient{}", node.op->name,
                      node.origin.empty() ? "" : fmt::format(" (in layer '{}')", node.origin.str()));
    MILLRACE_CHECK(parts.size() == node.operands.size(), "gradient of {} gives {} parts for {} operands",
                   node.op->name, parts.size(), node.operands.size());
    for (size_t k = 0; k < parts.size(); ++k)
      if (depends[node.operands[k].node]) accumulate(node.operands[k], parts[k]);
  }
  graph.set_origin(outer);
  std::vector<Value> found;
  for (const Value& value : wrt) {
    const auto it = gradient.find(value);
    found.push_back(it == gradient.end() ? build.zeros(value) : it->second);
  }
  return found;
}

}  // namespace

std::vector<Value> gradients(Graph& graph, std::span<const Value> outputs, std::span<const Value> seeds,
                             std::span<const Value> wrt) {
  return flow_back(graph, outputs, seeds, wrt, false);
}

std::vector<Value> partial_gradients(Graph& graph, std::span<const Value> outputs,
                                     std::span<const Value> seeds, std::span<const Value> wrt) {
  std::vector<Value> floating, all;
  for (const Value& value : wrt)
    if (graph.type(value).dtype.is_float() && !contains(floating, value)) floating.push_back(value);
  const std::vector<Value> found = flow_back(graph, outputs, seeds, floating, true);
  size_t next = 0;
  for (const Value& value : wrt)
    all.push_back(next < floating.size() && floating[next] == value ? found[next++] : Value{});
  return all;
}

std::vector<Value> gradients(Graph& graph, Value loss, std::span<const Value> wrt) {
  if (graph.type(loss).shape.rank() != 0)
    fail<TypeError>("the loss must be a scalar, but it is {}", graph.type(loss).str());
  const Value seed = graph.scalar(graph.type(loss).dtype, 1);
  const Value outputs[] = {loss}, seeds[] = {seed};
  return gradients(graph, outputs, seeds, wrt);
}

}  // namespace millrace
