#include "onnx/import/call.h"

using namespace millrace;

namespace {

Value unary(onnx::ImportCall& call, std::string_view op, Value x) { return call.graph.add(op, {x}); }

}  // namespace

MILLRACE_ONNX_IMPORT(Tan) { return {call.b.div(unary(call, "sin", call[0]), unary(call, "cos", call[0]))}; }
MILLRACE_ONNX_IMPORT(Sinh) {
  // Of exp(x) − 1, which is exact near 0.
  const Value up = unary(call, "expm1", call[0]);
  return {call.b.mul(call.b.add(up, call.b.div(up, call.b.add(up, 1))), 0.5)};
}
MILLRACE_ONNX_IMPORT(Cosh) {
  const Value up = unary(call, "exp", call[0]);
  return {call.b.mul(call.b.add(up, unary(call, "reciprocal", up)), 0.5)};
}
MILLRACE_ONNX_IMPORT(Asinh) {
  const Value x = unary(call, "abs", call[0]), square = call.b.mul(x, x);
  const Value root = unary(call, "sqrt", call.b.add(square, 1));
  // log(x + √(x² + 1)) as log1p, which is exact near 0.
  const Value y = unary(call, "log1p", call.b.add(x, call.b.div(square, call.b.add(root, 1))));
  return {call.b.mul(y, unary(call, "sign", call[0]))};
}
MILLRACE_ONNX_IMPORT(Acosh) {
  const Value x = call[0];
  return {unary(call, "log", call.b.add(x, unary(call, "sqrt", call.b.sub(call.b.mul(x, x), 1))))};
}
MILLRACE_ONNX_IMPORT(Atanh) {
  const Value x = call[0];
  return {call.b.mul(call.b.sub(unary(call, "log1p", x), unary(call, "log1p", unary(call, "neg", x))), 0.5)};
}
