#include "onnx/import/call.h"

using namespace millrace;

// Functions of one element with numbers of their own.
namespace {

Value positive(onnx::ImportCall& call) { return call.compare("greater", call[0], 0); }

/// alpha · (exp(x / by) − 1)
Value below(onnx::ImportCall& call, double alpha, double by = 1) {
  const Value x = by == 1 ? call[0] : call.b.div(call[0], by);
  return call.b.mul(call.graph.add("expm1", {x}), alpha);
}

}  // namespace

MILLRACE_ONNX_IMPORT(LeakyRelu) {
  return {call.b.select(positive(call), call[0], call.b.mul(call[0], call.number("alpha", 0.01)))};
}
MILLRACE_ONNX_IMPORT(Relu) { return {call.graph.add("relu", {call[0]})}; }
MILLRACE_ONNX_IMPORT(Softplus) { return {call.graph.add("softplus", {call[0]})}; }
MILLRACE_ONNX_IMPORT(PRelu) {
  // Before opset 7 the slopes are one a channel, wherever these lie.
  if (call.opset < 7 && call.rank(1) == 1 && call.rank(0) > 2) {
    Shape shape(static_cast<size_t>(call.rank(0) - 1), Dim(1));
    shape[0] = call.shape(1)[0];
    return {call.b.select(positive(call), call[0], call.b.mul(call[0], call.b.reshape(call[1], shape)))};
  }
  return {call.b.select(positive(call), call[0], call.b.mul(call[0], call[1]))};
}
MILLRACE_ONNX_IMPORT(Elu) {
  return {call.b.select(positive(call), call[0], below(call, call.number("alpha", 1)))};
}
MILLRACE_ONNX_IMPORT(Selu) {
  const double alpha = call.number("alpha", 1.67326319217681884765625),
               gamma = call.number("gamma", 1.05070102214813232421875);
  return {call.b.mul(call.b.select(positive(call), call[0], below(call, alpha)), gamma)};
}
MILLRACE_ONNX_IMPORT(Celu) {
  const double alpha = call.number("alpha", 1);
  return {call.b.select(positive(call), call[0], below(call, alpha, alpha))};
}
MILLRACE_ONNX_IMPORT(ThresholdedRelu) {
  const Value over = call.compare("greater", call[0], call.number("alpha", 1));
  return {call.b.select(over, call[0], call.fill(call[0], 0))};
}
MILLRACE_ONNX_IMPORT(HardSigmoid) {
  const Value line = call.b.add(call.b.mul(call[0], call.number("alpha", 0.2)), call.number("beta", 0.5));
  return {call.clamp(line, 0, 1)};
}
MILLRACE_ONNX_IMPORT(HardSwish) {
  return {call.b.mul(call[0], call.clamp(call.b.add(call.b.mul(call[0], 1.0 / 6), 0.5), 0, 1))};
}
MILLRACE_ONNX_IMPORT(Swish) {
  const double alpha = call.number("alpha", 1);
  if (alpha == 1) return {call.graph.add("silu", {call[0]})};
  return {call.b.mul(call[0], call.graph.add("sigmoid", {call.b.mul(call[0], alpha)}))};
}
MILLRACE_ONNX_IMPORT(Mish) {
  return {call.b.mul(call[0], call.graph.add("tanh", {call.graph.add("softplus", {call[0]})}))};
}
MILLRACE_ONNX_IMPORT(Gelu) {
  const Value x = call[0];
  if (call.text("approximate", "none") == "none") return {call.graph.add("gelu", {x})};
  const Value cube = call.b.mul(call.b.mul(x, x), x);
  const Value inner = call.b.mul(call.b.add(x, call.b.mul(cube, 0.044715)), 0.7978845608028654);
  return {call.b.mul(call.b.mul(x, 0.5), call.b.add(call.graph.add("tanh", {inner}), 1))};
}
MILLRACE_ONNX_IMPORT(Shrink) {
  const double bias = call.number("bias", 0), border = call.number("lambd", 0.5);
  const Value x = call[0], zero = call.fill(x, 0);
  const Value low = call.compare("less", x, -border), high = call.compare("greater", x, border);
  return {call.b.select(low, call.b.add(x, bias), call.b.select(high, call.b.sub(x, bias), zero))};
}
