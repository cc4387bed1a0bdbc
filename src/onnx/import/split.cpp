#include <algorithm>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(Split) {
  const int64_t axis = call.axis(call.integer("axis", 0), call.rank(0));
  const Ints sizes = call.shape(0).sizes();
  const int64_t size = sizes[static_cast<size_t>(axis)];
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
    Ints starts(sizes.size(), 0), ends = sizes;
    starts[static_cast<size_t>(axis)] = at;
    ends[static_cast<size_t>(axis)] = at + part;
    at += part;
    if (part < 0 || at > size) call.refuse("its parts are more than there is");
    results.push_back(call.graph.add("slice", {call[0]}, {{"starts", starts}, {"ends", ends}}));
  }
  return results;
}
