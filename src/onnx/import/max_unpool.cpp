#include "onnx/import/windows.h"

using namespace millrace;
using onnx::Ints;

/// The largest of each window put back to where it was; once, where windows overlap and share it.
MILLRACE_ONNX_IMPORT(MaxUnpool) {
  const Ints x = call.shape(0).sizes(), kernel = call.ints("kernel_shape");
  const size_t dims = kernel.size();
  const Ints strides = call.ints("strides", Ints(dims, 1)), pads = call.ints("pads", Ints(2 * dims, 0));
  if (x.size() != dims + 2 || strides.size() != dims || pads.size() != 2 * dims ||
      call.shape(1) != call.shape(0))
    call.refuse("its window does not fit its operands");
  Ints sizes{x[0], x[1]};
  for (size_t d = 0; d < dims; ++d)
    sizes.push_back((x[d + 2] - 1) * strides[d] - pads[d] - pads[d + dims] + kernel[d]);
  if (!Type{f32, Shape(sizes)}.fault().empty() || Shape(sizes).count() > (int64_t{1} << 32))
    call.refuse("its result would be too large");
  const int64_t all = Shape(sizes).count(), many = call.shape(0).count();
  const Value zeros = call.b.broadcast(call.scalar(call.dtype(0), 0), {all});
  const Value flat = call.graph.add(
      "scatter_rows", {zeros, call.b.reshape(call[1], {many}), call.b.reshape(call[0], {many})});
  Value y = call.b.reshape(flat, Shape(sizes));
  if (!call.given(2)) return {y};
  const Ints said = call.known_ints(2);
  if (said.size() != sizes.size()) call.refuse("its output_shape does not fit its operands");
  Ints high;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (said[d] < sizes[d]) call.refuse("its output_shape is smaller than what its windows cover");
    high.push_back(said[d] - sizes[d]);
  }
  return {call.graph.add("pad", {y}, {{"low", Ints(high.size(), 0)}, {"high", high}})};
}
