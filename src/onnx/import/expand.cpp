#include "onnx/import/bounded.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(Expand) {
  const onnx::ImportCall::Said said = call.sizes_said(1);
  if (!said.known() || call.bounded(0)) return {onnx::expanded(call, call.item(0), said)};
  return {call.b.broadcast(call[0], broadcast_shapes(call.shape(0), Shape(call.known_ints(1))))};
}

/// As a broadcast along a dimension of its own beside each.
MILLRACE_ONNX_IMPORT(Tile) {
  const Ints sizes = call.shape(0).sizes(), repeats = call.known_ints(1);
  if (repeats.size() != sizes.size()) call.refuse("it needs a number of repeats for each dimension");
  Ints apart, wide, together;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (repeats[d] < 0) call.refuse("a number of repeats is negative");
    apart.insert(apart.end(), {1, sizes[d]});
    wide.insert(wide.end(), {repeats[d], sizes[d]});
    int64_t size = 0;
    if (__builtin_mul_overflow(repeats[d], sizes[d], &size)) call.refuse("it repeats too often");
    together.push_back(size);
  }
  return {
      call.b.reshape(call.b.broadcast(call.b.reshape(call[0], Shape(apart)), Shape(wide)), Shape(together))};
}
