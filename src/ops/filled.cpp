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

}  // namespace millrace::ops
