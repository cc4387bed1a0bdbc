#include "onnx/import/windows.h"

#include <algorithm>

namespace millrace::onnx {
namespace {

void to_two(Ints& list, int64_t fill) {
  if (list.size() == 1) list.insert(list.begin(), fill);
}

}  // namespace

Windows windows_of(const ImportCall& call, const Ints& kernel) {
  const auto dims = kernel.size();
  if (dims < 1) call.refuse("its windows have no dimensions");
  if (call.rank(0) != static_cast<int>(dims) + 2)
    call.refuse("its windows have another number of dimensions than its input");
  Windows w{static_cast<int>(dims),
            kernel,
            call.ints("strides", Ints(dims, 1)),
            call.ints("dilations", Ints(dims, 1)),
            {}};
  if (w.strides.size() != dims || w.dilations.size() != dims)
    call.refuse("strides or dilations are not as many as the dimensions");
  for (size_t d = 0; d < dims; ++d)
    if (w.strides[d] < 1 || w.dilations[d] < 1 || w.kernel[d] < 1)
      call.refuse("strides, dilations and windows must be positive");
  const std::string automatic = call.text("auto_pad", "NOTSET");
  Ints before(dims, 0), behind(dims, 0);
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    for (size_t d = 0; d < dims; ++d) {
      const int64_t size = call.shape(0)[d + 2].size(), outputs = (size + w.strides[d] - 1) / w.strides[d];
      const int64_t all =
          std::max<int64_t>(0, (outputs - 1) * w.strides[d] + (kernel[d] - 1) * w.dilations[d] + 1 - size);
      before[d] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      behind[d] = all - before[d];
    }
  } else if (automatic != "VALID") {
    const Ints pads = call.ints("pads", Ints(2 * dims, 0));
    if (pads.size() != 2 * dims) call.refuse("it needs two pads for each dimension");
    before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(dims));
    behind.assign(pads.begin() + static_cast<int64_t>(dims), pads.end());
  }
  w.pads = before;
  w.pads.insert(w.pads.end(), behind.begin(), behind.end());
  return w;
}

Windows as_two(Windows w) {
  if (w.dims != 1) return w;
  to_two(w.kernel, 1);
  to_two(w.strides, 1);
  to_two(w.dilations, 1);
  w.pads = {0, w.pads[0], 0, w.pads[1]};
  return w;
}

Value two_dimensional(ImportCall& call, Value x, const Windows& windows) {
  if (windows.dims != 1) return x;
  Shape shape = call.b.shape(x);
  shape.insert(shape.begin() + 2, Dim(1));
  return call.b.reshape(x, shape);
}

Value as_it_was(ImportCall& call, Value y, const Windows& windows) {
  if (windows.dims != 1) return y;
  Shape shape = call.b.shape(y);
  shape.erase(shape.begin() + 2);
  return call.b.reshape(y, shape);
}

Value padded(ImportCall& call, Value x, const Windows& windows, double value) {
  const auto dims = static_cast<size_t>(windows.dims);
  Ints low(dims + 2, 0), high(dims + 2, 0);
  for (size_t d = 0; d < dims; ++d) {
    low[d + 2] = windows.pads[d];
    high[d + 2] = windows.pads[d + dims];
  }
  return call.graph.add("pad", {x}, {{"low", low}, {"high", high}, {"value", value}});
}

}  // namespace millrace::onnx
