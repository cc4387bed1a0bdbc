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
  const int rank = call.rank(0);
  int64_t axis = call.integer("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) call.refuse("it has no such axis");
  int64_t before = 1, behind = 1;
  for (int d = 0; d < rank; ++d) (d < axis ? before : behind) *= call.shape(0)[static_cast<size_t>(d)].size();
  return {call.b.reshape(call[0], {before, behind})};
}
