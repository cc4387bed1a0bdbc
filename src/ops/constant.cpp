#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(constant) {
  Operator op;
  op.name = "constant";
  op.op_class = OpClass::constant;
  op.doc = "A value known when the graph is built; appended by Graph::constant.";
  op.min_operands = op.max_operands = 0;
  op.attributes = {{"value", AttributeType::array, "the array"}};
  op.differentiable = false;
  op.types = [](const TypeContext& context) {
    const Array& value = context.attributes.get<Array>("value");
    if (value.empty()) context.error("the array has no memory");
    return std::vector<Type>{value.type()};
  };
  return op;
}
