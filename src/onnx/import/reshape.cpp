#include <iterator>

#include "onnx/import/bounded.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(Reshape) {
  if (call.opset < 5) {
    const Ints wanted = call.ints("shape");
    return {reshaped(call, call.item(0), {wanted, wanted, {}})};
  }
  (void)call.buffer(0);  // a tensor
  return {reshaped(call, call.item(0), call.sizes_said(1))};
}

MILLRACE_ONNX_IMPORT(Flatten) {
  const Ints have = call.b.shape(call.buffer(0)).sizes();
  const int64_t rank = std::ssize(have), axis = call.integer("axis", 1), at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at > rank) call.refuse("it has no such axis");
  Ints wanted{1, 1};
  for (int64_t d = 0; d < rank; ++d) wanted[d < at ? 0 : 1] *= have[static_cast<size_t>(d)];
  if (call.bounded(0)) wanted[call.item(0).bounded_axis < at ? 0 : 1] = -1;
  return {reshaped(call, call.item(0), {wanted, wanted, {}})};
}
