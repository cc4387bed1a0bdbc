#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Concat) {
  const int64_t axis = call.axis(call.integer("axis"), call.rank(0));
  if (call.count() == 1) return {call[0]};
  return {call.graph.add("concat", call.tensors(), {{"axis", axis}})};
}
