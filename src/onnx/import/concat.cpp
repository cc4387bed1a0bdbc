#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Concat) {
  const int64_t axis = call.axis(call.integer("axis"), call.rank(0));
  return {call.concat(call.tensors(), axis)};
}
