#include <cmath>

#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/filled.h"
#include "passes/rules/rule.h"

namespace millrace {

static Value divide_by_power_of_two(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->is(ScalarOp::div) || !node.types[0].dtype.is_float()) return {};
  const Array* divisor = ops::filled_with(graph, operands[1]);
  int exponent = 0;
  if (!divisor || std::abs(std::frexp(divisor->at(0), &exponent)) != 0.5 || std::abs(exponent) > 14)
    return {};
  ops::Build b(graph);
  return b.mul(operands[0], 1 / divisor->at(0));
}

MILLRACE_RULE(divide_by_power_of_two){.name = "divide-by-power-of-two",
                                      .doc = "x / 2ⁿ = x · 2⁻ⁿ, where 2⁻ⁿ is a normal number of the type",
                                      .place = 130,
                                      .exact = true,
                                      .apply = divide_by_power_of_two};

}  // namespace millrace
