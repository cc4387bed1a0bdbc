#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Concat) {
  const int64_t axis = call.axis(call.integer("axis"), call.rank(0));
  std::vector<Value> parts;
  for (int k = 0; k < call.count(); ++k) parts.push_back(call[k]);
  return {call.concat(parts, axis)};
}
