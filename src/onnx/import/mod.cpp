#include "onnx/import/call.h"

using namespace millrace;

/// The sign of the divisor, or with fmod that of the dividend.
MILLRACE_ONNX_IMPORT(Mod) {
  const Value rest = call.b.binary("rem", call[0], call[1]);
  if (call.integer("fmod", 0) != 0) return {rest};
  const Shape shape = call.b.shape(rest);
  const Value divisor = call.b.broadcast(call[1], shape), zero = call.fill(rest, 0);
  const Value other_sign = call.graph.add(
      "logical_xor", {call.graph.add("less", {rest, zero}), call.graph.add("less", {divisor, zero})});
  const Value wrong = call.graph.add("logical_and", {other_sign, call.graph.add("not_equal", {rest, zero})});
  return {call.b.select(wrong, call.b.add(rest, divisor), rest)};
}
