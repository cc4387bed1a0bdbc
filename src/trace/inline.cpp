#include "trace/inline.h"

#include <map>

#include "base/format.h"
#include "trace/node.h"

namespace millrace::trace {
namespace {

/// What the names of a graph's dimensions are for these tensors; names that stay are left out.
Bindings sizes_of(const Graph& graph, std::span<const Tensor> inputs) {
  if (inputs.size() != graph.inputs().size())
    fail<TypeError>("{} tensors for the {} inputs of a graph", inputs.size(), graph.inputs().size());
  Bindings sizes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type &wanted = graph.type(graph.inputs()[i]), &given = inputs[i].type();
    bool fits = wanted.dtype == given.dtype && wanted.shape.rank() == given.shape.rank();
    for (int d = 0; fits && d < wanted.shape.rank(); ++d) {
      const Dim &want = wanted.shape[static_cast<size_t>(d)], &have = given.shape[static_cast<size_t>(d)];
      if (want == have) continue;
      fits = want.names().size() == 1 && want.factor() == 1 && have.is_static() &&
             sizes.emplace(want.names()[0], have.size()).first->second == have.size();
    }
    if (!fits) fail<TypeError>("'{}' is {}, not {}", graph.input_names()[i], given.str(), wanted.str());
  }
  return sizes;
}

}  // namespace

std::vector<Tensor> inline_graph(const Graph& graph, std::span<const Tensor> inputs) {
  const Bindings sizes = sizes_of(graph, inputs);
  std::map<Value, Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) tensors[graph.inputs()[i]] = inputs[i];
  for (int i = 0; i < graph.size(); ++i) {
    if (tensors.contains({i, 0})) continue;
    const Node& node = graph.node(i);
    if (const Array* constant = graph.constant_value({i, 0})) {
      tensors[{i, 0}] = Tensor(*constant);
      continue;
    }
    const LayerScope scope(node.origin.layer);
    std::vector<Tensor> operands;
    for (const Value operand : node.operands) operands.push_back(tensors.at(operand));
    Attributes attributes = node.attributes;
    for (const auto& [name, value] : node.attributes.items())
      if (const Shape* shape = std::get_if<Shape>(&value)) attributes.set(name, shape->specialise(sizes));
    if (node.op->random) {
      const RandomKey random = next_random_key();
      operands.back() = random.key;
      attributes.set("stream", random.stream);
    }
    std::shared_ptr<const Graph> body;
    if (node.op->runs_body())
      body = sizes.empty() ? node.body : std::make_shared<const Graph>(specialise(*node.body, sizes));
    const std::vector<Tensor> results = node.op->takes_body() && !body
                                            ? inline_graph(*node.body, operands)
                                            : record(*node.op, operands, std::move(attributes),
                                                     std::move(body), std::source_location::current());
    for (size_t r = 0; r < results.size(); ++r) tensors[{i, static_cast<int32_t>(r)}] = results[r];
  }
  std::vector<Tensor> outputs;
  for (const Value output : graph.outputs()) outputs.push_back(tensors.at(output));
  return outputs;
}

}  // namespace millrace::trace
