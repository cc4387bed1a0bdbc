#include <algorithm>

#include "onnx/import/places.h"
#include "onnx/import/windows.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// As a convolution of the input, zeros between its elements, with the weights turned round.
Value of_three(onnx::ImportCall& call, int64_t groups, const Ints& pads, const Ints& result) {
  const Ints weight = call.shape(1).sizes();
  const Ints strides = call.ints("strides", Ints(3, 1)), dilations = call.ints("dilations", Ints(3, 1));
  if (groups < 1 || weight[0] % groups != 0) call.refuse("its groups do not fit its weights");
  Value x = call[0];
  onnx::Windows w{3, Ints(weight.begin() + 2, weight.end()), Ints(3, 1), dilations, Ints(6, 0)};
  for (size_t d = 0; d < 3; ++d) {
    const size_t axis = d + 2;
    if (strides[d] > 1) {
      Ints sizes = call.b.shape(x).sizes(), apart = sizes;
      apart.insert(apart.begin() + static_cast<int64_t>(axis) + 1, 1);
      const Value spread =
          call.pad(call.b.reshape(x, Shape(apart)), static_cast<int64_t>(axis) + 1, 0, strides[d] - 1);
      const int64_t end = (sizes[axis] - 1) * strides[d] + 1;
      sizes[axis] *= strides[d];
      x = call.part(call.b.reshape(spread, Shape(sizes)), static_cast<int64_t>(axis), 0, end);
    }
    w.pads[d] = w.extent(d) - 1 - pads[d];
    w.pads[d + 3] = result[d] - 1 + w.extent(d) - call.b.shape(x)[axis].size() - w.pads[d];
    // What the pads take away is not computed at all.
    const int64_t start = std::max<int64_t>(0, -w.pads[d]),
                  end = call.b.shape(x)[axis].size() - std::max<int64_t>(0, -w.pads[d + 3]);
    if (start >= end) call.refuse("its pads leave nothing");
    x = call.part(x, static_cast<int64_t>(axis), start, end);
    w.pads[d] = std::max<int64_t>(0, w.pads[d]);
    w.pads[d + 3] = std::max<int64_t>(0, w.pads[d + 3]);
  }
  Value turned = call[1];
  for (int64_t d = 2; d < 5; ++d) turned = turned_round(call, turned, d);
  const int64_t from = weight[0] / groups, to = weight[1];
  turned = call.b.transpose(call.b.reshape(turned, {groups, from, to, weight[2], weight[3], weight[4]}),
                            {0, 2, 1, 3, 4, 5});
  Value y = onnx::convolved(
      call, x, call.b.reshape(turned, {groups * to, from, weight[2], weight[3], weight[4]}), w, groups);
  if (call.given(2)) y = call.b.add(y, call.b.reshape(call[2], {call.shape(2)[0], 1, 1, 1}));
  return y;
}

}  // namespace

MILLRACE_ONNX_IMPORT(ConvTranspose) {
  const Ints weight = call.shape(1).sizes(), x = call.shape(0).sizes();
  if (weight.size() < 3 || weight.size() > 5 || x.size() != weight.size())
    call.refuse("it has another number of dimensions than 1, 2 or 3");
  const size_t dims = weight.size() - 2;
  const Ints strides = call.ints("strides", Ints(dims, 1)), dilations = call.ints("dilations", Ints(dims, 1)),
             extra = call.ints("output_padding", Ints(dims, 0));
  const int64_t groups = call.integer("group", 1);
  const std::string automatic = call.text("auto_pad", "NOTSET");
  Ints pads = call.ints("pads", Ints(2 * dims, 0)), result;
  if (strides.size() != dims || dilations.size() != dims || extra.size() != dims || pads.size() != 2 * dims)
    call.refuse("its attributes are not as many as the dimensions");
  for (size_t d = 0; d < dims; ++d) {
    const int64_t full = strides[d] * (x[d + 2] - 1) + extra[d] + (weight[d + 2] - 1) * dilations[d] + 1;
    if (call.has("output_shape") || automatic.starts_with("SAME")) {
      const int64_t wanted = call.has("output_shape")
                                 ? call.ints("output_shape").at(call.ints("output_shape").size() - dims + d)
                                 : x[d + 2] * strides[d];
      const int64_t all = std::max<int64_t>(0, full - wanted);
      pads[d] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      if (automatic == "NOTSET") pads[d] = all / 2;
      pads[d + dims] = all - pads[d];
      result.push_back(wanted);
    } else {
      result.push_back(full - pads[d] - pads[d + dims]);
    }
  }
  if (dims == 3) return {of_three(call, groups, pads, result)};
  const onnx::Windows own{static_cast<int>(dims), Ints(weight.begin() + 2, weight.end()), strides, dilations,
                          pads};
  onnx::Windows w = as_two(own);
  if (dims == 1) result.insert(result.begin(), 1);
  const Value dy = two_dimensional(call, call[0], own), kernel = two_dimensional(call, call[1], own);
  const Ints from = call.b.shape(dy).sizes();
  // The convolution whose gradient this is may not leave more over than a stride: what output_padding adds
  // beyond is bias alone.
  Shape reached{x[0], weight[1] * groups};  // without rows that no window reaches
  Ints low(4, 0), high(4, 0);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t behind = (from[d + 2] - 1) * w.strides[d] + w.extent(d) - w.pads[d] - result[d];
    high[d + 2] = std::max<int64_t>(0, -behind);
    reached.emplace_back(result[d] - high[d + 2]);
    w.pads[d + 2] = std::max<int64_t>(0, behind);
  }
  Value y = call.graph.add("conv2d_input_grad", {dy, kernel},
                           {{"strides", w.strides},
                            {"pads", w.pads},
                            {"dilations", w.dilations},
                            {"groups", groups},
                            {"input_shape", reached}});
  if (high != low) y = call.graph.add("pad", {y}, {{"low", low}, {"high", high}});
  if (call.given(2)) y = call.b.add(y, call.b.reshape(call[2], {call.shape(2)[0], 1, 1}));
  return {as_it_was(call, y, own)};
}
