#include <cmath>

#include <millrace/onnx_rule.h>

#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(is_finite) {
  Operator op = ops::predicate("is_finite", "Whether x is neither infinite nor NaN");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.less(b.unary(ScalarOp::abs, x[0]), b.constant(b.dtype(x[0]), INFINITY));
  };
  op.samples.push_back({.operands = {{f32, {4}}}, .values = {{0, {NAN, 1, INFINITY, -INFINITY}}}});
  op.onnx = {"IsInf", "IsNaN"};
  op.onnx_rule = [](const OnnxCall& c) {
    const std::string either =
        c.onnx.node("Or", {c.onnx.node("IsInf", c.operands), c.onnx.node("IsNaN", c.operands)});
    return c.one("Not", {either});
  };
  return op;
}
