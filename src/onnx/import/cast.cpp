#include <string>

#include "onnx/import/call.h"
#include "onnx/import/narrow.h"

using namespace millrace;

namespace {

/// Of an f32 the power of two that is below it, or the nearest one.
Value power_of_two(onnx::ImportCall& call, Value x, bool nearest) {
  const auto whole = [&](double value) { return call.b.broadcast(call.scalar(i32, value), call.b.shape(x)); };
  Value bits = call.graph.add("bitcast", {x}, {{"dtype", i32}});
  if (nearest) bits = call.graph.add("add", {bits, whole(0x400000)});
  bits = call.graph.add("bit_and", {bits, whole(0x7F800000)});
  return call.graph.add("bitcast", {bits}, {{"dtype", f32}});
}

Value cast_to(onnx::ImportCall& call, DType to) {
  const DType from = call.dtype(0);
  Value x = call[0];
  // To bool means "is not zero".
  if (to == boolean && from != boolean) {
    if (is_narrow_float(from) || from.bits < 8) x = call.b.cast(x, f32);
    return call.compare("not_equal", x, 0);
  }
  if (to == f8e8m0 && call.has("round_mode") && call.text("round_mode") != "up")
    return call.b.cast(power_of_two(call, call.b.cast(x, f32), call.text("round_mode") == "nearest"), to);
  if (is_narrow_float(to)) return onnx::narrowed(call, x, to, call.integer("saturate", 1) != 0);
  // Narrow integers take the lowest bits, of floats too.
  if (to.is_int() && to.bits < 8 && from.is_float()) x = call.b.cast(x, i32);
  return call.b.cast(x, to);
}

}  // namespace

MILLRACE_ONNX_IMPORT(Cast) {
  const std::optional<DType> to = onnx::dtype_of(call.integer("to"));
  if (!to) call.refuse("Millrace does not compute with " + onnx::data_type_name(call.integer("to")));
  return {cast_to(call, *to)};
}

MILLRACE_ONNX_IMPORT(CastLike) { return {cast_to(call, call.dtype(1))}; }

MILLRACE_ONNX_IMPORT(BitCast) {
  const std::optional<DType> to = onnx::dtype_of(call.integer("to"));
  if (!to) call.refuse("Millrace does not compute with " + onnx::data_type_name(call.integer("to")));
  const DType from = call.dtype(0);
  Value x = call[0];
  if (from == *to) return {x};
  if (from.is_bool()) x = call.b.cast(x, u8);
  if (to->is_bool()) return {call.compare("not_equal", x, 0)};
  return {call.b.dtype(x) == *to ? x : call.graph.add("bitcast", {x}, {{"dtype", *to}})};
}
