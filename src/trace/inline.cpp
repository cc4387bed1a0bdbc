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

class Inliner {
 public:
  Inliner(const Graph& graph, std::span<const Tensor> inputs)
      : graph_(graph), sizes_(sizes_of(graph, inputs)) {
    for (size_t i = 0; i < inputs.size(); ++i) tensors_[graph.inputs()[i]] = inputs[i];
  }

  std::vector<Tensor> run() {
    for (int i = 0; i < graph_.size(); ++i)
      if (!tensors_.contains({i, 0})) visit(i);
    std::vector<Tensor> outputs;
    for (const Value output : graph_.outputs()) outputs.push_back(tensors_.at(output));
    return outputs;
  }

 private:
  void visit(int index) {
    const Node& node = graph_.node(index);
    if (const Array* constant = graph_.constant_value({index, 0})) {
      tensors_[{index, 0}] = Tensor(*constant);
      return;
    }
    const LayerScope scope(node.location.layer);
    std::vector<Tensor> operands;
    for (const Value operand : node.operands) operands.push_back(tensors_.at(operand));
    Attributes attributes = node.attributes;
    for (const auto& [name, value] : node.attributes.items())
      if (const Shape* shape = std::get_if<Shape>(&value)) attributes.set(name, shape->specialise(sizes_));
    if (node.op->random) {
      const RandomKey random = next_random_key();
      operands.back() = random.key;
      attributes.set("stream", random.stream);
    }
    std::shared_ptr<const Graph> body;
    if (node.op->runs_body()) {
      body = sizes_.empty() ? node.body : std::make_shared<const Graph>(specialise(*node.body, sizes_));
    }
    const std::vector<Tensor> results = node.op->takes_body() && !body
                                            ? inline_graph(*node.body, operands)
                                            : record(*node.op, operands, std::move(attributes),
                                                     std::move(body), std::source_location::current());
    for (size_t r = 0; r < results.size(); ++r) tensors_[{index, static_cast<int32_t>(r)}] = results[r];
  }

  const Graph& graph_;
  Bindings sizes_;
  std::map<Value, Tensor> tensors_;
};

}  // namespace

std::vector<Tensor> inline_graph(const Graph& graph, std::span<const Tensor> inputs) {
  return Inliner(graph, inputs).run();
}

}  // namespace millrace::trace
