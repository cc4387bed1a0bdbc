#include <numbers>

#include "ops/activation.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

Value gelu_body(ops::Build& b, Value x, const Attributes& attributes) {
  const Value half = b.mul(x, 0.5);
  if (attributes.get<std::string>("approximate") == "tanh") {
    const Value cubic = b.add(x, b.mul(b.mul(b.mul(x, x), x), 0.044715));
    const Value t = b.unary("tanh", b.mul(cubic, std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
    return b.mul(half, b.add(t, 1));
  }
  return b.mul(half, b.add(b.unary("erf", b.mul(x, 1 / std::numbers::sqrt2)), 1));
}

}  // namespace

MILLRACE_OPERATOR(gelu) {
  Operator op = ops::activation(
      "gelu", "x · Φ(x), Φ being the normal distribution, exact or by tanh. (Hendrycks, Gimpel, 2016)",
      {{"approximate",
        Attribute(std::string("none")),
        "exact (none), or by tanh",
        {.choices = {"none", "tanh"}}}},
      gelu_body);
  for (size_t i = 0, count = op.samples.size(); i < count; ++i) {
    op.samples.push_back(op.samples[i]);
    op.samples.back().attributes.set("approximate", std::string("tanh"));
  }
  return op;
}
