#include <algorithm>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(ConvTranspose) {
  const Ints weight = call.shape(1).sizes(), x = call.shape(0).sizes();
  if (weight.size() < 3 || weight.size() > 4 || x.size() != weight.size())
    call.refuse("it has another number of dimensions than 1 or 2");
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
  const auto two = [&](Ints list, int64_t fill) {
    if (list.size() == 1) list.insert(list.begin(), fill);
    return list;
  };
  const Ints size = two(result, 1), from = two(Ints(x.begin() + 2, x.end()), 1),
             window = two(Ints(weight.begin() + 2, weight.end()), 1);
  Ints before = two(Ints(pads.begin(), pads.begin() + static_cast<int64_t>(dims)), 0),
       behind = two(Ints(pads.begin() + static_cast<int64_t>(dims), pads.end()), 0);
  const Ints by = two(strides, 1), gaps = two(dilations, 1);
  // The convolution whose gradient this is may not leave more over than a stride: what output_padding adds
  // beyond is bias alone.
  const Shape shape{x[0], weight[1] * groups, size[0], size[1]};
  const Value dy = call.b.reshape(call[0], {x[0], x[1], from[0], from[1]}),
              w = call.b.reshape(call[1], {weight[0], weight[1], window[0], window[1]});
  for (size_t d = 0; d < 2; ++d)
    behind[d] = (from[d] - 1) * by[d] + (window[d] - 1) * gaps[d] + 1 - before[d] - size[d];
  for (const int64_t each : behind)
    if (each < 0) {
      // Rows that no window reaches.
      Shape reached = shape;
      Ints low(4, 0), high(4, 0);
      for (size_t d = 0; d < 2; ++d) {
        high[d + 2] = std::max<int64_t>(0, -behind[d]);
        reached[d + 2] = size[d] - high[d + 2];
        behind[d] = std::max<int64_t>(0, behind[d]);
      }
      const Value part = call.graph.add("conv2d_input_grad", {dy, w},
                                        {{"strides", by},
                                         {"pads", Ints{before[0], before[1], behind[0], behind[1]}},
                                         {"dilations", gaps},
                                         {"groups", groups},
                                         {"input_shape", reached}});
      Value y = call.graph.add("pad", {part}, {{"low", low}, {"high", high}});
      if (call.given(2)) y = call.b.add(y, call.b.reshape(call[2], {call.shape(2)[0], 1, 1}));
      Shape back{x[0], weight[1] * groups};
      for (const int64_t each_size : result) back.emplace_back(each_size);
      return {call.b.reshape(y, back)};
    }
  Value y = call.graph.add("conv2d_input_grad", {dy, w},
                           {{"strides", by},
                            {"pads", Ints{before[0], before[1], behind[0], behind[1]}},
                            {"dilations", gaps},
                            {"groups", groups},
                            {"input_shape", shape}});
  if (call.given(2)) y = call.b.add(y, call.b.reshape(call[2], {call.shape(2)[0], 1, 1}));
  Shape back{x[0], weight[1] * groups};
  for (const int64_t each : result) back.emplace_back(each);
  return {call.b.reshape(y, back)};
}
