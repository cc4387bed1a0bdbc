#include "backend/cpu/onednn/geometry.h"

#include <algorithm>
#include <string_view>

#include <millrace/operator.h>

namespace millrace::onednn {

using dnnl::memory;

namespace {

bool channels_last(const Shape& shape, const Layout& layout) {
  if (layout == Layout{0, 2, 3, 1}) return true;
  // One channel, or one position: both orders are the same.
  return layout.empty() && (shape[1] == 1 || (shape[2] == 1 && shape[3] == 1));
}

memory::desc described(const Type& type, const Layout& layout) {
  return {type.shape.sizes(), data_type(type.dtype), strides_of(type.shape, layout)};
}

// Chunks of the open stage, a few images each.
void copy_images(StagedKernel& kernel, const Type& type, const Layout& from_layout, Place from,
                 const Layout& to_layout, Place to) {
  const int64_t images = type.shape[0].size(), step = (images + 15) / 16, bytes = type.bytes() / images;
  for (int64_t begin = 0; begin < images; begin += step) {
    Type part = type;
    part.shape[0] = std::min(step, images - begin);
    kernel.chunk();
    kernel.copy(described(part, from_layout), from + begin * bytes, described(part, to_layout),
                to + begin * bytes);
  }
}

const Layout kChannelsLast{0, 2, 3, 1};

}  // namespace

memory::desc activations(const Geometry& g, int64_t images, int64_t channels, int64_t height, int64_t width) {
  return {{images, channels, height, width}, data_type(g.dtype), memory::format_tag::nhwc};
}

memory::desc plain_weights(const Geometry& g, DType dtype, int64_t out_channels, int64_t in_channels) {
  const int64_t window = g.kernel_height * g.kernel_width, per_output = g.in_channels / g.groups * window;
  const memory::dims sizes{out_channels, in_channels, g.kernel_height, g.kernel_width},
      strides{per_output, window, g.kernel_width, 1};
  if (g.groups == 1) return {sizes, data_type(dtype), strides};
  return {{g.groups, sizes[0], sizes[1], sizes[2], sizes[3]},
          data_type(dtype),
          {g.out_channels / g.groups * per_output, strides[0], strides[1], strides[2], strides[3]}};
}

memory::desc own_weights(const Geometry& g, DType dtype, int64_t out_channels, int64_t in_channels) {
  return {plain_weights(g, dtype, out_channels, in_channels).get_dims(), data_type(dtype),
          memory::format_tag::any};
}

Place channels_last_operand(StagedKernel& kernel, const Type& type, const Layout& layout, Buffer buffer) {
  if (channels_last(type.shape, layout)) return {buffer};
  const Place place = kernel.reserve(type.bytes());
  copy_images(kernel, type, layout, {buffer}, kChannelsLast, place);
  return place;
}

Place channels_last_result(StagedKernel& kernel, const Type& type, const Layout& layout) {
  return channels_last(type.shape, layout) ? Place{Buffer::result} : kernel.reserve(type.bytes());
}

void copy_result(StagedKernel& kernel, const Type& type, const Layout& layout, Place from) {
  if (from.buffer == Buffer::result) return;
  kernel.stage();
  copy_images(kernel, type, kChannelsLast, from, layout, {Buffer::result});
}

}  // namespace millrace::onednn
