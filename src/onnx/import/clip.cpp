#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Clip) {
  const DType dtype = call.dtype(0);
  Value x = call[0];
  if (call.opset < 11) {
    if (call.has("min")) x = call.b.binary("maximum", x, call.scalar(dtype, call.number("min")));
    if (call.has("max")) x = call.b.binary("minimum", x, call.scalar(dtype, call.number("max")));
    return {x};
  }
  const Array *low = call.known(1), *high = call.known(2);
  const bool numbers = dtype.is_float() && (low || !call.given(1)) && (high || !call.given(2));
  if (numbers && !(low && high && low->at(0) > high->at(0))) {
    Attributes attributes;
    if (low) attributes.set("low", low->at(0));
    if (high) attributes.set("high", high->at(0));
    return {call.graph.add("clamp", {x}, attributes)};
  }
  if (call.given(1)) x = call.b.binary("maximum", x, call[1]);
  if (call.given(2)) x = call.b.binary("minimum", x, call[2]);
  return {x};
}
