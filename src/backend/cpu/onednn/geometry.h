// What a convolution node computes, and its memory formats. Internal to the provider.
#pragma once

#include "backend/cpu/onednn/staged_kernel.h"

namespace millrace::onednn {

/// y = conv2d(x, w), whichever of the three the node computes.
struct Geometry {
  int64_t images, groups, in_channels, out_channels;  // channels of all groups together
  int64_t in_height, in_width, out_height, out_width, kernel_height, kernel_width;
  int64_t stride_h, stride_w, dilation_h, dilation_w, top, left, bottom, right;
  DType dtype;

  /// FLOPs, and some for every element that is moved: about how long it takes.
  double work() const;
  /// Rows that the kernel spans.
  int64_t reach_h() const;
};

/// Some rows of y, and the rows of x (of one image) that they are computed from.
struct Slab {
  int64_t first_in, in_height, out_height, top, bottom;  // top, bottom: padding
  auto operator<=>(const Slab&) const = default;
};

/// The rows [begin, end) of y. Only where can_cut_rows() when they are not all.
Slab slab_of(const Geometry& g, int64_t begin, int64_t end);
/// True when every row of y depends on some row of x.
bool can_cut_rows(const Geometry& g);

Geometry geometry_of(const Graph& graph, const Node& node);

/// Channels-last activations of so many images, rows and channels.
dnnl::memory::desc activations(const Geometry& g, int64_t images, int64_t channels, int64_t height,
                               int64_t width);
/// Weights [O, I, kh, kw] or [groups, O, I, kh, kw] (O and I of one group) in row-major order, their outer strides
/// those of all channels; `dtype` may differ from the activations'.
dnnl::memory::desc plain_weights(const Geometry& g, DType dtype, int64_t out_channels, int64_t in_channels);
/// The same sizes in the primitive's own format.
dnnl::memory::desc own_weights(const Geometry& g, DType dtype, int64_t out_channels, int64_t in_channels);

/// Where an activation operand stands channels-last: where it is, or, when its layout is another, scratch that
/// chunks of the open stage copy it to.
Place channels_last_operand(StagedKernel& kernel, const Type& type, const Layout& layout, Buffer buffer);
/// Where the primitives write the result channels-last: where it belongs, or scratch that copy_result() copies from.
Place channels_last_result(StagedKernel& kernel, const Type& type, const Layout& layout);
void copy_result(StagedKernel& kernel, const Type& type, const Layout& layout, Place from);

}  // namespace millrace::onednn
