// Convolutions and their gradients by oneDNN, and their memory formats. Internal to the provider.
#pragma once

#include "backend/cpu/kernels/geometry.h"
#include "backend/cpu/onednn/staged_kernel.h"

namespace millrace::onednn {

using cpu::Geometry;
using cpu::geometry_of;
using cpu::Slab;

/// conv2d and conv2d_input_grad: weights times something that has images.
std::unique_ptr<Kernel> build_convolution(const KernelRequest& request);
/// conv2d_weight_grad.
std::unique_ptr<Kernel> build_weight_gradient(const KernelRequest& request);

/// Channels-last activations of so many images, rows and channels.
dnnl::memory::desc activations(const Geometry& g, int64_t images, int64_t channels, int64_t height,
                               int64_t width);
/// Weights [O, I, kh, kw] or [groups, O, I, kh, kw] (O and I of one group) in row-major order, their outer
/// strides those of all channels; `dtype` may differ from the activations'.
dnnl::memory::desc plain_weights(const Geometry& g, DType dtype, int64_t out_channels, int64_t in_channels);
/// The same sizes in the primitive's own format.
dnnl::memory::desc own_weights(const Geometry& g, DType dtype, int64_t out_channels, int64_t in_channels);

/// Where an activation operand stands channels-last: where it is, or, when its layout is another, scratch
/// that chunks of the open stage copy it to.
Place channels_last_operand(StagedKernel& kernel, const Type& type, const Layout& layout, Buffer buffer);
/// Where the primitives write the result channels-last: where it belongs, or scratch that copy_result()
/// copies from.
Place channels_last_result(StagedKernel& kernel, const Type& type, const Layout& layout);
void copy_result(StagedKernel& kernel, const Type& type, const Layout& layout, Place from);

}  // namespace millrace::onednn
