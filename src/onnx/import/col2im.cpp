#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

/// The columns of windows put back where they came from, and added.
MILLRACE_ONNX_IMPORT(Col2Im) {
  const Ints x = call.shape(0).sizes(), image = call.known_ints(1), block = call.known_ints(2);
  const size_t dims = image.size();
  const Ints dilations = call.ints("dilations", Ints(dims, 1)), strides = call.ints("strides", Ints(dims, 1)),
             pads = call.ints("pads", Ints(2 * dims, 0));
  if (x.size() != 3 || block.size() != dims || dilations.size() != dims || strides.size() != dims ||
      pads.size() != 2 * dims)
    call.refuse("its sizes do not fit each other");
  int64_t window = 1, places = 1, all = 1;
  Ints steps;
  for (size_t d = 0; d < dims; ++d) {
    if (image[d] < 1 || block[d] < 1 || strides[d] < 1 || dilations[d] < 1 || image[d] > (1 << 20) ||
        block[d] > (1 << 20))
      call.refuse("its sizes are not positive, or too large");
    window *= block[d];
    all *= image[d];
    steps.push_back((image[d] + pads[d] + pads[d + dims] - dilations[d] * (block[d] - 1) - 1) / strides[d] +
                    1);
    places *= steps[d];
    if (window > (1 << 24) || all > (1 << 28)) call.refuse("its sizes are too large");
  }
  if (x[1] % window != 0 || x[2] != places) call.refuse("its columns do not fit its windows");
  Array at(i64, {window * places});
  for (int64_t k = 0; k < window; ++k)
    for (int64_t p = 0; p < places; ++p) {
      int64_t in_window = k, step = p, flat = 0, stride = 1;
      bool inside = true;
      for (size_t d = dims; d-- > 0;) {
        const int64_t place = step % steps[d] * strides[d] - pads[d] + in_window % block[d] * dilations[d];
        inside = inside && place >= 0 && place < image[d];
        flat += place * stride;
        stride *= image[d];
        in_window /= block[d];
        step /= steps[d];
      }
      at.set_int(k * places + p, inside ? flat : all);  // outside: dropped
    }
  const int64_t rows = x[0] * (x[1] / window);
  const Value columns = call.b.reshape(call[0], {rows, window * places});
  const Value zeros = call.b.broadcast(call.scalar(call.dtype(0), 0), {rows, all});
  const Value sums =
      call.graph.add("scatter_add", {zeros, call.constant(at), columns}, {{"axis", int64_t{1}}});
  Shape shape{x[0], x[1] / window};
  for (const int64_t size : image) shape.emplace_back(size);
  return {call.b.reshape(sums, shape)};
}
