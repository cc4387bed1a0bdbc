#include <algorithm>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(Split) {
  const int64_t axis = call.axis(call.integer("axis", 0), call.rank(0));
  const int64_t size = call.shape(0)[static_cast<size_t>(axis)].size();
  Ints parts;
  if (call.given(1)) {
    parts = call.known_ints(1);
  } else if (call.has("split")) {
    parts = call.ints("split");
  } else {
    const int64_t count = call.integer("num_outputs", static_cast<int64_t>(call.node.outputs.size()));
    if (count < 1) call.refuse("it must have outputs");
    const int64_t each = (size + count - 1) / count;
    for (int64_t i = 0; i < count; ++i) parts.push_back(std::clamp<int64_t>(size - i * each, 0, each));
  }
  std::vector<Value> results;
  int64_t at = 0;
  for (const int64_t part : parts) {
    if (part < 0 || part > size - at) call.refuse("its parts are more than there is");
    results.push_back(call.part(call[0], axis, at, at + part));
    at += part;
  }
  return results;
}
