#include <algorithm>
#include <functional>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// Before opset 13 over all dimensions from the axis on.
std::vector<Value> along(onnx::ImportCall& call, const std::function<Value(Value, int64_t)>& of) {
  const int64_t axis = call.axis(call.integer("axis", call.opset < 13 ? 1 : -1), std::max(call.rank(0), 1));
  if (call.opset >= 13) return {of(call[0], axis)};
  int64_t before = 1, behind = 1;
  for (int d = 0; d < call.rank(0); ++d)
    (d < axis ? before : behind) *= call.shape(0)[static_cast<size_t>(d)].size();
  const Shape shape = call.shape(0);
  return {call.b.reshape(of(call.b.reshape(call[0], {before, behind}), 1), shape)};
}

}  // namespace

MILLRACE_ONNX_IMPORT(Softmax) {
  return along(call, [&](Value x, int64_t axis) { return call.b.softmax(x, axis); });
}
MILLRACE_ONNX_IMPORT(LogSoftmax) {
  return along(call, [&](Value x, int64_t axis) {
    return call.graph.add("log_softmax", {x}, {{"axis", axis}});
  });
}
MILLRACE_ONNX_IMPORT(Hardmax) {
  return along(call, [&](Value x, int64_t axis) {
    const Value first = call.graph.add("argmax", {x}, {{"axes", Ints{axis}}, {"keep_dims", true}});
    const Value place = call.places(call.b.shape(x), axis);
    return call.b.cast(call.b.binary("equal", place, first), call.b.dtype(x));
  });
}
