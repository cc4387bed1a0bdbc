#include "backend/cpu/onednn/geometry.h"

#include <algorithm>
#include <string_view>

#include "ir/operator.h"

namespace millrace::onednn {

using dnnl::memory;

namespace {

bool channels_last(const Shape& shape, const Layout& layout) {
  if (layout == Layout{0, 2, 3, 1}) return true;
  // One channel, or one position: both orders are the same.
  return layout.empty() && (shape[1] == 1 || (shape[2] == 1 && shape[3] == 1));
}

memory::desc described(const Type& type, const Layout& layout) {
  const std::vector<int64_t> sizes = type.shape.sizes();
  memory::dims strides(sizes.size());
  int64_t stride = 1;
  for (int i = static_cast<int>(sizes.size()) - 1; i >= 0; --i) {
    const int dim = layout.empty() ? i : layout[i];
    strides[dim] = stride;
    stride *= sizes[dim];
  }
  return {sizes, data_type(type.dtype), strides};
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

const Layout wanted{0, 2, 3, 1};

}  // namespace

double Geometry::work() const {
  const auto count = [](auto... sizes) { return (1.0 * ... * static_cast<double>(sizes)); };
  return 2 * count(images, out_height, out_width, out_channels, in_channels / groups, kernel_height,
                   kernel_width) +
         32 * (count(images, in_channels, in_height, in_width) +
               count(images, out_channels, out_height, out_width));
}

int64_t Geometry::reach_h() const { return (kernel_height - 1) * dilation_h + 1; }

Slab slab_of(const Geometry& g, int64_t begin, int64_t end) {
  if (begin == 0 && end == g.out_height) return {0, g.in_height, g.out_height, g.top, g.bottom};
  const int64_t first = begin * g.stride_h - g.top, last = (end - 1) * g.stride_h - g.top + g.reach_h();
  const int64_t top = std::max<int64_t>(-first, 0), bottom = std::max<int64_t>(last - g.in_height, 0);
  return {first + top, last - first - top - bottom, end - begin, top, bottom};
}

bool can_cut_rows(const Geometry& g) { return g.top < g.reach_h() && g.bottom < g.reach_h(); }

Geometry geometry_of(const Graph& graph, const Node& node) {
  const auto operand = [&](int i) -> const Shape& { return graph.type(node.operands[i]).shape; };
  const Shape& result = node.types[0].shape;
  const bool forward = node.op->name == "conv2d", input = node.op->name == "conv2d_input_grad";
  const Shape &x = input ? result : operand(0), &w = forward || input ? operand(1) : result,
              &y = forward ? result
                   : input ? operand(0)
                           : operand(1);
  const auto& strides = node.attributes.ints("strides");
  const auto& pads = node.attributes.ints("pads");
  const auto& dilations = node.attributes.ints("dilations");
  Geometry g{};
  g.images = x[0].size();
  g.groups = node.attributes.integer("groups");
  g.in_channels = x[1].size();
  g.out_channels = y[1].size();
  g.in_height = x[2].size();
  g.in_width = x[3].size();
  g.out_height = y[2].size();
  g.out_width = y[3].size();
  g.kernel_height = w[2].size();
  g.kernel_width = w[3].size();
  g.stride_h = strides[0];
  g.stride_w = strides[1];
  g.dilation_h = dilations[0];
  g.dilation_w = dilations[1];
  g.top = pads[0];
  g.left = pads[1];
  g.bottom = pads[2];
  g.right = pads[3];
  g.dtype = graph.type(node.operands[0]).dtype;
  return g;
}

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
  copy_images(kernel, type, layout, {buffer}, wanted, place);
  return place;
}

Place channels_last_result(StagedKernel& kernel, const Type& type, const Layout& layout) {
  return channels_last(type.shape, layout) ? Place{Buffer::result} : kernel.reserve(type.bytes());
}

void copy_result(StagedKernel& kernel, const Type& type, const Layout& layout, Place from) {
  if (from.buffer == Buffer::result) return;
  kernel.stage();
  copy_images(kernel, type, wanted, from, layout, {Buffer::result});
}

}  // namespace millrace::onednn
