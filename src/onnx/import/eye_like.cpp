#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(EyeLike) {
  const Shape shape = call.shape(0);
  const Value row = call.places(shape, 0), column = call.places(shape, 1);
  return {call.b.cast(
      call.graph.add("equal", {column, call.b.add(row, static_cast<double>(call.integer("k", 0)))}),
      call.said_dtype(call.dtype(0)))};
}
