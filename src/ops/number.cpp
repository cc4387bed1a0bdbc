#include "ops/number.h"

#include <millrace/operator.h>

namespace millrace::ops {

std::optional<double> number_of(const Graph& graph, Value value) {
  while (graph.node(value).op->broadcasts || graph.node(value).op->reshapes())
    value = graph.node(value).operands[0];
  const Array* constant = graph.constant_value(value);
  if (!constant || constant->count() != 1) return std::nullopt;
  return constant->at(0);
}

}  // namespace millrace::ops
