#include <numbers>

#include "onnx/import/call.h"

using namespace millrace;

// The arc functions by the arc tangent.

namespace {

Value one_minus_square(onnx::ImportCall& call, Value x) {  // (1 − x)(1 + x): exact near ±1
  return call.b.mul(call.b.sub(call.fill(x, 1), x), call.b.add(x, 1));
}

}  // namespace

MILLRACE_ONNX_IMPORT(Asin) {
  const Value x = call[0], root = call.graph.add("sqrt", {one_minus_square(call, x)});
  return {call.graph.add("atan", {call.b.div(x, root)})};
}

/// 2 · atan(√((1 − x) / (1 + x))), which does not cancel near 1.
MILLRACE_ONNX_IMPORT(Acos) {
  const Value x = call[0];
  const Value ratio = call.b.div(call.b.sub(call.fill(x, 1), x), call.b.add(x, 1));
  return {call.b.mul(call.graph.add("atan", {call.graph.add("sqrt", {ratio})}), 2)};
}
