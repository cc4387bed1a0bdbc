#include <cmath>

#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(clamp) {
  const std::vector<DType> dtypes = {f32, f64, bf16, f16, i8, u8, i16, u16, i32, u32, i64, u64};
  Operator op = ops::elementwise_unary(
      "clamp", "x limited to [low, high]; NaN stays NaN. The gradient passes inside, bounds included.",
      dtypes);
  op.attributes = {{"low", Attribute(-INFINITY), "the least result"},
                   {"high", Attribute(INFINITY), "the greatest"}};
  op.types = [inner = op.types](const TypeContext& c) {
    const double low = c.attributes.number("low"), high = c.attributes.number("high");
    if (!(low <= high)) c.error("low must not exceed high");
    if (!c.operands[0].dtype.is_float())
      for (const double bound : {low, high})
        if (std::isfinite(bound) && Array::scalar(c.operands[0].dtype, bound).at(0) != bound)
          c.error(std::to_string(bound) + " is not a value of the dtype");
    return inner(c);
  };
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node& node) {
    const double low = node.attributes.number("low"), high = node.attributes.number("high");
    Scalar y = x[0];
    if (std::isfinite(low)) y = b.max(y, b.constant(b.dtype(y), low));
    if (std::isfinite(high)) y = b.min(y, b.constant(b.dtype(y), high));
    return y;
  };
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0], x = c.operands[0];
    const Value low = b.fill(x, c.node.attributes.number("low")),
                high = b.fill(x, c.node.attributes.number("high"));
    const Value inside =
        b.binary("logical_and", b.binary("greater_equal", x, low), b.binary("less_equal", x, high));
    return std::vector<Value>{b.select(inside, g, b.zeros(g))};
  };
  for (size_t i = 0; i < op.samples.size(); ++i) {
    Sample& sample = op.samples[i];
    if (i % 3 != 1) sample.attributes.set("low", sample.operands[0].dtype.is_float() ? -0.75 : 1.0);
    if (i % 3 != 2) sample.attributes.set("high", sample.operands[0].dtype.is_float() ? 1.25 : 3.0);
  }
  op.arithmetic = Arithmetic::follows;
  op.keeps_zero = [](const Node& node) {
    return node.attributes.number("low") <= 0 && node.attributes.number("high") >= 0;
  };
  op.onnx = {"Clip"};
  op.onnx_rule = [](const OnnxCall& c) {
    const auto bound = [&](double value) { return std::isfinite(value) ? c.scalar(value) : ""; };
    const std::string low = bound(c.attributes().number("low")), high = bound(c.attributes().number("high"));
    return c.one("Clip", {c.operands[0], low, high});
  };
  return op;
}
