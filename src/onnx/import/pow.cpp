#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Pow) {
  const DType dtype = call.dtype(0);
  if (dtype.is_float()) return {call.b.binary("pow", call[0], call.b.cast(call[1], dtype))};
  const Value power = call.b.binary("pow", call.b.cast(call[0], f64), call.b.cast(call[1], f64));
  return {call.b.cast(power, dtype)};
}
