#include <cmath>

#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(is_nan) {
  Operator op = ops::predicate("is_nan", "Whether x is not a number");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.binary(ScalarOp::not_equal, x[0], x[0]);
  };
  op.samples.push_back({.operands = {{f32, {3}}}, .values = {{0, {NAN, 1, INFINITY}}}});
  op.onnx = {"IsNaN"};
  return op;
}
