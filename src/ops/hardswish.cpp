#include <millrace/onnx_rule.h>

#include "ops/activation.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(hardswish) {
  Operator op = ops::activation(
      "hardswish", "x · clamp(x + 3, 0, 6) / 6. (Howard et al., 2019)", {},
      [](ops::Build& b, Value x, const Attributes&) {
        const Value gate = b.graph().add("clamp", {b.add(x, 3)}, {{"low", 0.0}, {"high", 6.0}});
        return b.mul(b.mul(x, gate), 1.0 / 6);
      });
  op.onnx = {"HardSwish"};
  op.onnx_rule = [](const OnnxCall& c) {
    constexpr int known_since = 14;
    return c.onnx.opset() < known_since ? std::vector<std::string>{} : c.one("HardSwish", c.operands);
  };
  return op;
}
