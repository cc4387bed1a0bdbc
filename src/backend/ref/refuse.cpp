#include "backend/ref/registry.h"
#include "base/format.h"

using namespace millrace;

MILLRACE_REF(refuse) {
  if (operands[0].int_at(0) != 0) fail<InputError>("{}", node.attributes.get<std::string>("message"));
  return {Array::full(node.types[0].dtype, node.types[0].shape, 0)};
}
