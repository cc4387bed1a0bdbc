#include "onnx/import/sampling.h"
#include "onnx/import/windows.h"

using namespace millrace;
using onnx::Ints;

/// Each place of the window looks where its offset says, between elements; what it sees is multiplied as by a
/// convolution.
MILLRACE_ONNX_IMPORT(DeformConv) {
  const Ints x = call.shape(0).sizes(), weight = call.shape(1).sizes(), offsets = call.shape(2).sizes();
  if (x.size() != 4 || weight.size() != 4 || offsets.size() != 4)
    call.refuse("only pictures of two dimensions are known");
  const onnx::Windows w = windows_of(call, Ints(weight.begin() + 2, weight.end()));
  const int64_t group = call.integer("group", 1), own = call.integer("offset_group", 1),
                many = weight[2] * weight[3], height = offsets[2], width = offsets[3],
                places = height * width;
  if (group < 1 || own < 1 || x[1] % own != 0 || x[1] != weight[1] * group || weight[0] % group != 0 ||
      offsets[1] != own * many * 2 || offsets[0] != x[0])
    call.refuse("its offsets, groups and weights do not fit each other");
  const int64_t n = x[0] * own;
  const Value offset = call.b.reshape(call[2], {n, many, 2, places});
  std::vector<Value> at;
  for (int64_t d = 0; d < 2; ++d) {
    const Value moved = call.b.reshape(call.part(offset, 2, d, d + 1), {n, many, places});
    Array fixed(f32, {1, many, places});  // without the offset
    for (int64_t k = 0; k < many; ++k)
      for (int64_t p = 0; p < places; ++p) {
        const int64_t in_window = d == 0 ? k / weight[3] : k % weight[3],
                      out = d == 0 ? p / width : p % width;
        const auto axis = static_cast<size_t>(d);
        fixed.set(k * places + p,
                  static_cast<double>(out * w.strides[axis] - w.pads[axis] + in_window * w.dilations[axis]));
      }
    at.push_back(call.b.reshape(call.b.add(moved, call.b.cast(call.constant(fixed), call.b.dtype(moved))),
                                {n, many * places}));
  }
  onnx::Sampling sampling;
  sampling.align_corners = true;
  Value seen = onnx::sampled(call, call.b.reshape(call[0], {n, x[1] / own, x[2], x[3]}), at, sampling);
  if (call.given(4)) seen = call.b.mul(seen, call.b.reshape(call[4], {n, 1, many * places}));
  seen = call.b.reshape(seen, {x[0], group, weight[1] * many, places});
  const Shape stacked{x[0], group, weight[0] / group, weight[1] * many};
  const Value factors =
      call.b.broadcast(call.b.reshape(call[1], {1, group, weight[0] / group, weight[1] * many}), stacked);
  Value y = call.b.reshape(call.b.matmul(factors, seen), {x[0], weight[0], height, width});
  if (call.given(3)) y = call.b.add(y, call.b.reshape(call[3], {weight[0], 1, 1}));
  return {y};
}
