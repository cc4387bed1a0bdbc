// Windows over [batch, channels, …], as convolutions and pooling have them. Of one dimension they are windows
// over two, the first of size 1; of three and more they are put together of what is known of two.
#pragma once

#include "onnx/import/call.h"

namespace millrace::onnx {

struct Windows {
  int dims = 2;
  Ints kernel, strides, dilations, pads;  // pads: before each dimension, then behind each

  int64_t extent(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

/// The attributes kernel_shape, strides, dilations, pads and auto_pad of a node over operand 0.
Windows windows_of(const ImportCall& call, const Ints& kernel);
/// Of one dimension as of two; others as they are.
Windows as_two(Windows windows);
/// With a dimension of size 1 in front where there is one only.
Value two_dimensional(ImportCall& call, Value x, const Windows& windows);
/// And back.
Value as_it_was(ImportCall& call, Value y, const Windows& windows);
/// x with a value around it, as much as the windows' pads say.
Value padded(ImportCall& call, Value x, const Windows& windows, double value = 0);
/// The convolution of 1, 2 or 3 dimensions of x with a weight [to, from / groups, kernel …].
Value convolved(ImportCall& call, Value x, Value weight, const Windows& windows, int64_t groups);

}  // namespace millrace::onnx
