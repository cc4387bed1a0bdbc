#include "onnx/import/windows.h"

using namespace millrace;
using onnx::Ints;

namespace {

Value with_bias(onnx::ImportCall& call, Value y) {
  if (!call.given(2)) return y;
  Shape shape(static_cast<size_t>(call.b.shape(y).rank() - 1), Dim(1));
  shape[0] = call.shape(2)[0];
  return call.b.add(y, call.b.reshape(call[2], shape));
}

Value two(onnx::ImportCall& call, Value x, Value weight, const onnx::Windows& of, int64_t groups) {
  const onnx::Windows w = as_two(of);
  const Value y = call.graph.add(
      "conv2d", {two_dimensional(call, x, of), two_dimensional(call, weight, of)},
      {{"strides", w.strides}, {"pads", w.pads}, {"dilations", w.dilations}, {"groups", groups}});
  return as_it_was(call, y, of);
}

/// Of three dimensions: for each place of the window along the first one, the slices that it meets, which
/// become samples, in a convolution of the other two; the sum of these.
Value three(onnx::ImportCall& call, Value picture, Value weight, const onnx::Windows& w, int64_t groups) {
  const Value x = call.pad(picture, 2, w.pads[0], w.pads[3]);
  const Ints sizes = call.b.shape(x).sizes(), kernel = call.b.shape(weight).sizes();
  const int64_t depth = (sizes[2] - w.extent(0)) / w.strides[0] + 1;
  if (sizes[2] < w.extent(0)) call.refuse("its window is larger than what it looks at");
  const onnx::Windows inner{2,
                            {w.kernel[1], w.kernel[2]},
                            {w.strides[1], w.strides[2]},
                            {w.dilations[1], w.dilations[2]},
                            {w.pads[1], w.pads[2], w.pads[4], w.pads[5]}};
  Value total;
  for (int64_t k = 0; k < w.kernel[0]; ++k) {
    const int64_t from = k * w.dilations[0], to = from + (depth - 1) * w.strides[0] + 1;
    const Value met = call.graph.add("slice", {x},
                                     {{"starts", Ints{0, 0, from, 0, 0}},
                                      {"ends", Ints{sizes[0], sizes[1], to, sizes[3], sizes[4]}},
                                      {"steps", Ints{1, 1, w.strides[0], 1, 1}}});
    const Value samples = call.b.reshape(call.b.transpose(met, {0, 2, 1, 3, 4}),
                                         {sizes[0] * depth, sizes[1], sizes[3], sizes[4]});
    const Value part =
        call.b.reshape(call.part(weight, 2, k, k + 1), {kernel[0], kernel[1], kernel[3], kernel[4]});
    const Value y = two(call, samples, part, inner, groups);
    total = total.valid() ? call.b.add(total, y) : y;
  }
  const Ints out = call.b.shape(total).sizes();
  const Value apart = call.b.reshape(total, {sizes[0], depth, out[1], out[2], out[3]});
  return call.b.transpose(apart, {0, 2, 1, 3, 4});
}

}  // namespace

Value onnx::convolved(ImportCall& call, Value x, Value weight, const Windows& windows, int64_t groups) {
  return windows.dims == 3 ? three(call, x, weight, windows, groups) : two(call, x, weight, windows, groups);
}

MILLRACE_ONNX_IMPORT(Conv) {
  const Ints weight = call.shape(1).sizes();
  if (weight.size() < 3 || weight.size() > 5) call.refuse("convolutions of 1, 2 and 3 dimensions are known");
  const onnx::Windows w = windows_of(call, Ints(weight.begin() + 2, weight.end()));
  return {with_bias(call, onnx::convolved(call, call[0], call[1], w, call.integer("group", 1)))};
}
