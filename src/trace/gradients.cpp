// Gradients of functions of tensors: their graph differentiated, and taken apart into tensors again.
#include "autodiff/gradient.h"
#include "base/format.h"
#include "trace/linearise.h"

namespace millrace {

ValueAndGradients value_and_gradients(const std::function<Tensor(std::span<const Tensor>)>& function,
                                      std::span<const Tensor> arguments, std::source_location where) {
  if (!function) fail<InputError>("{}: there is no function to differentiate", trace::place(where));
  std::vector<Tensor> symbols;
  for (const Tensor& argument : arguments)
    symbols.push_back(Tensor::symbol(fmt::format("argument {}", symbols.size()), argument.type()));
  const Tensor loss = function(symbols);
  if (loss.type().shape.rank() != 0)
    fail<TypeError>("{}: gradients need a scalar, but the function gives {}", trace::place(where),
                    loss.type().str());

  // Inputs: the symbols, then whatever else the function used.
  std::vector<Tensor> inputs(arguments.begin(), arguments.end());
  trace::Captured captured = trace::capture(symbols, {&loss, 1}, &inputs);
  Graph& graph = captured.graph;
  const Value value = captured.value_of(loss);
  const std::vector<Value> wrt(graph.inputs().begin(),
                               graph.inputs().begin() + static_cast<int64_t>(symbols.size()));
  std::vector<Value> outputs = gradients(graph, value, wrt);
  outputs.insert(outputs.begin(), value);
  graph.set_outputs(std::move(outputs));
  std::vector<Tensor> results = trace::tensors_of(graph, inputs, where);
  return {results[0], {results.begin() + 1, results.end()}};
}

}  // namespace millrace
