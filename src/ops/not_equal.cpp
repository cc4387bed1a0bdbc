#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(not_equal) {
  Operator op = ops::comparison("not_equal", "a ≠ b");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.binary(ScalarOp::not_equal, x[0], x[1]);
  };
  return op;
}
