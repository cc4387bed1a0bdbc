#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(input) {
  Operator op;
  op.name = "input";
  op.op_class = OpClass::input;
  op.doc = "An input of the graph; appended by Graph::input.";
  op.min_operands = op.max_operands = 0;
  op.differentiable = false;
  return op;
}
