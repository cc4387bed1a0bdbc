#include <cmath>

#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/filled.h"
#include "passes/rules/rule.h"

namespace millrace {

// x / c = x · (1 / c): one rounding more, at most 1.5 units in the last place from x / c; f32 and f64 only.
static Value divide_by_constant(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->is(ScalarOp::div) || (node.types[0].dtype != f32 && node.types[0].dtype != f64)) return {};
  const Array* divisor = ops::filled_with(graph, operands[1]);
  if (!divisor || !(std::abs(divisor->at(0)) > 1e-30 && std::abs(divisor->at(0)) < 1e30)) return {};
  ops::Build b(graph);
  return b.mul(operands[0], 1 / divisor->at(0));
}

MILLRACE_RULE(divide_by_constant){.name = "divide-by-constant",
                                  .doc = "x / c = x · (1 / c)",
                                  .place = 170,
                                  .exact = false,
                                  .apply = divide_by_constant};

}  // namespace millrace
