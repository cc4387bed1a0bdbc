#include <algorithm>
#include <map>

#include "backend/cpu/onednn/geometry.h"
#include "base/format.h"

namespace millrace::onednn {
namespace {

using dnnl::memory;

using Description = dnnl::convolution_backward_weights::primitive_desc;

/// Into how many parts images (or the rows of each) are split.
struct WeightSplit {
  int64_t images = 1, rows = 1;
};

// Every chunk has a gradient of its own (f32), and those are added in order. That costs a pass over the
// weights for each chunk, so their number is bounded by how much work an element of the gradient is.
WeightSplit split_of(const Geometry& g) {
  const int64_t positions = g.images * g.out_height * g.out_width;
  const auto by_work = static_cast<int64_t>(std::min(g.work() / 4e6, 16.0));
  const int64_t wanted =
      std::clamp<int64_t>(std::min(by_work, std::max<int64_t>(positions / 1024, 2)), 1, 16);
  if (g.images >= std::min<int64_t>(wanted, 4)) return {.images = std::min(g.images, wanted)};
  const int64_t rows = can_cut_rows(g) ? wanted / g.images : 1;
  return {.images = g.images, .rows = std::clamp<int64_t>(rows, 1, std::max<int64_t>(g.out_height / 3, 1))};
}

Description describe(const Geometry& g, int64_t images, const Slab& slab, const memory::desc& gradient) {
  const memory::desc x = activations(g, images, g.in_channels, slab.in_height, g.in_width),
                     y = activations(g, images, g.out_channels, slab.out_height, g.out_width);
  const int64_t out = g.out_channels / g.groups, in = g.in_channels / g.groups;
  const memory::dims strides{g.stride_h, g.stride_w}, dilations{g.dilation_h - 1, g.dilation_w - 1},
      before{slab.top, g.left}, after{slab.bottom, g.right};
  const auto direct = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(engine(), dnnl::prop_kind::forward_training, direct,
                                                          x, own_weights(g, g.dtype, out, in), y, strides,
                                                          dilations, before, after, attributes());
  return {engine(), direct, x, gradient, y, strides, dilations, before, after, forward, attributes()};
}

// Adds all partial gradients into the first, in order, in chunks of elements.
void add_partials(StagedKernel& kernel, const std::vector<Place>& partials, int64_t elements) {
  const int64_t step = std::max<int64_t>(16384, (elements / 16 + 15) / 16 * 16);
  kernel.stage();
  for (int64_t begin = 0; begin < elements; begin += step) {
    const memory::desc part({std::min(step, elements - begin)}, memory::data_type::f32,
                            memory::format_tag::a);
    const dnnl::sum::primitive_desc desc(engine(), part, std::vector<float>(partials.size(), 1.0F),
                                         std::vector<memory::desc>(partials.size(), part), attributes());
    std::vector<Argument> arguments{{DNNL_ARG_DST, part, partials[0] + begin * 4}};
    for (size_t i = 0; i < partials.size(); ++i)
      arguments.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), part, partials[i] + begin * 4});
    kernel.chunk();
    kernel.call(dnnl::sum(desc), desc, arguments);
  }
}

}  // namespace

std::unique_ptr<Kernel> build_weight_gradient(const KernelRequest& request) {
  const Geometry g = geometry_of(request.graph, request.node);
  const WeightSplit split = split_of(g);
  const int64_t out = g.out_channels / g.groups, in = g.in_channels / g.groups;
  auto kernel = std::make_unique<StagedKernel>();
  kernel->stage();
  const Place x = channels_last_operand(*kernel, request.operand_type(0), request.operand_layouts[0],
                                        Buffer::operand0),
              y = channels_last_operand(*kernel, request.operand_type(1), request.operand_layouts[1],
                                        Buffer::operand1);
  kernel->stage();
  // The first chunk's primitive chooses the format of all partial gradients.
  memory::desc format = own_weights(g, f32, out, in);
  std::map<std::pair<int64_t, Slab>, Description> made;
  std::map<std::pair<int64_t, Slab>, dnnl::convolution_backward_weights> primitives;
  std::vector<Place> partials;
  for (int64_t part = 0; part < split.images; ++part)
    for (int64_t rows = 0; rows < split.rows; ++rows) {
      const int64_t image = g.images * part / split.images,
                    images = g.images * (part + 1) / split.images - image;
      const int64_t row = g.out_height * rows / split.rows;
      const Slab slab = slab_of(g, row, g.out_height * (rows + 1) / split.rows);
      auto [at, fresh] = made.try_emplace({images, slab});
      if (fresh) at->second = describe(g, images, slab, format);
      const Description& desc = at->second;
      format = desc.diff_weights_desc();
      partials.push_back(kernel->reserve(static_cast<int64_t>(format.get_size())));
      const int64_t bytes = g.dtype.bytes(),
                    x_offset = (image * g.in_height + slab.first_in) * g.in_width * g.in_channels * bytes,
                    y_offset = (image * g.out_height + row) * g.out_width * g.out_channels * bytes;
      kernel->chunk();
      kernel->call(primitives.try_emplace({images, slab}, desc).first->second, desc,
                   {{DNNL_ARG_SRC, desc.src_desc(), x + x_offset},
                    {DNNL_ARG_DIFF_DST, desc.diff_dst_desc(), y + y_offset},
                    {DNNL_ARG_DIFF_WEIGHTS, format, partials.back()}});
    }
  if (partials.size() > 1) add_partials(*kernel, partials, static_cast<int64_t>(format.get_size()) / 4);
  kernel->stage();
  kernel->copy_in_parts(format, partials[0], plain_weights(g, g.dtype, out, in), {Buffer::result});
  kernel->describe(fmt::format("{}, {} images × {} rows in {} × {} partial sums",
                               made.begin()->second.impl_info_str(), g.images, g.out_height, split.images,
                               split.rows));
  return kernel;
}

}  // namespace millrace::onednn
