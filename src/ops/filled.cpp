#include "ops/filled.h"

#include <millrace/operator.h>

namespace millrace::ops {

const Array* filled_with(const Graph& graph, Value value) {
  while (graph.node(value).op->broadcasts) value = graph.node(value).operands[0];
  const Array* constant = graph.constant_value(value);
  return constant && constant->count() == 1 ? constant : nullptr;
}

bool is_filled_with(const Graph& graph, Value value, double number) {
  const Array* constant = filled_with(graph, value);
  return constant && constant->at(0) == number;
}

std::optional<double> number_of(const Graph& graph, Value value) {
  while (graph.node(value).op->broadcasts || graph.node(value).op->reshapes())
    value = graph.node(value).operands[0];
  const Array* constant = filled_with(graph, value);
  return constant ? std::optional(constant->at(0)) : std::nullopt;
}

}  // namespace millrace::ops
