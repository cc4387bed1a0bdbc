#include "ops/convolution.h"

#include <algorithm>
#include <map>
#include <optional>

#include <millrace/operator.h>

#include "backend/cpu/kernels/vectors.h"
#include "backend/cpu/onednn/geometry.h"
#include "base/format.h"

namespace millrace::onednn {
namespace {

using dnnl::memory;

/// Into how many parts the result of conv2d or conv2d_input_grad is split.
struct Split {
  int64_t images = 1, rows = 1, channels = 1;
};

// So many parts, or more equal ones whose results stay in a core's own cache for those who read them next.
int64_t parts_of_batch(const Geometry& g, bool forward, int64_t wanted) {
  constexpr int64_t kCacheBytes = 256 << 10;
  constexpr double kLeastWork = 16e6;  // of a chunk: calls cost some microseconds
  const int64_t image =
      (forward ? g.out_channels * g.out_height * g.out_width : g.in_channels * g.in_height * g.in_width) *
      g.dtype.bytes();
  for (int64_t parts = wanted; parts <= g.images && g.work() / static_cast<double>(parts) >= kLeastWork;
       ++parts)
    if (g.images % parts == 0 && (g.images / parts * image <= kCacheBytes || parts == g.images)) return parts;
  return wanted;
}

// Chunks of images where there are enough, else of rows (the slabs of a channels-last image are dense), else,
// on small maps, of channels: into scratch and from there between the others. Row chunks are measured to cost
// 1–3 % at three rows and more, channel chunks as little at 64 channels and more.
Split split_of(const Geometry& g, bool forward) {
  const auto wanted = static_cast<int64_t>(std::clamp(g.work() / 4e6, 1.0, 16.0));
  const int64_t few = std::min<int64_t>(wanted, 8);
  if (g.images >= few) return {.images = parts_of_batch(g, forward, std::min(g.images, wanted))};
  Split split{.images = g.images};
  if (forward && can_cut_rows(g))
    split.rows = std::clamp<int64_t>(few / g.images, 1, std::max<int64_t>(g.out_height / 3, 1));
  if (split.rows > 1) split.rows -= split.rows % 2;
  const int64_t channels = forward ? g.out_channels : g.in_channels;
  if (split.images * split.rows < std::min<int64_t>(few, 4) && g.groups == 1)
    for (const int64_t parts : {8, 4, 2})
      if (parts <= few && channels % (64 * parts) == 0) return {.images = g.images, .channels = parts};
  return split;
}

// More and smaller chunks, where what a chunk's ending reads again would not stay in a core's own cache.
Split cut_for_ending(Split split, const Geometry& g) {
  constexpr int64_t kCacheBytes = 160 << 10;
  const int64_t image = 4 * g.out_channels * g.out_width * g.out_height;
  if (split.channels > 1 || g.images / split.images * image <= kCacheBytes) return split;
  split.images = g.images;  // only the rows of one image lie side by side
  if (can_cut_rows(g))
    split.rows = std::max(split.rows, std::min((image + kCacheBytes - 1) / kCacheBytes,
                                               std::max<int64_t>(g.out_height / 3, 1)));
  return split;
}

/// One side of the convolution: x or y.
struct Side {
  int64_t channels, height, width;
};

/// What distinguishes the primitive of a chunk from others; channels are the result's.
struct Key {
  int64_t images, channels;
  Slab slab;
  auto operator<=>(const Key&) const = default;
};

class Builder {
 public:
  Builder(const KernelRequest& request, bool forward)
      : request_(request),
        forward_(forward),
        g_(geometry_of(request.graph, request.node)),
        split_(cpu::epilogue_of(request.node).present ? cut_for_ending(split_of(g_, forward), g_)
                                                      : split_of(g_, forward)),
        x_{g_.in_channels, g_.in_height, g_.in_width},
        y_{g_.out_channels, g_.out_height, g_.out_width},
        constant_(request.graph.constant_value(request.node.operands[1])),
        epilogue_(cpu::epilogue_of(request.node)) {}

  std::unique_ptr<Kernel> build() {
    const Layout &operand_layout = request_.operand_layouts[0], &result_layout = request_.result_layouts[0];
    const Type& result = request_.node.types[0];
    kernel_->ends_with(epilogue_);
    kernel_->stage();
    operand_ = channels_last_operand(*kernel_, request_.operand_type(0), operand_layout, Buffer::operand0);
    result_ = channels_last_result(*kernel_, result, result_layout);
    MILLRACE_CHECK(!epilogue_.present || result_.buffer == Buffer::result,
                   "a result that is not channels-last");
    // Packing belongs to the first stage, and which formats are wanted the primitives say.
    each_chunk([&](int64_t n, int64_t y, int64_t c) { weights(primitive(key_of(n, y)).weights, c); });
    kernel_->stage();
    each_chunk([&](int64_t n, int64_t y, int64_t c) { add_chunk(n, y, c); });
    if (split_.channels == 1 && g_.images % split_.images == 0 && to().height % split_.rows == 0 &&
        result_.buffer == Buffer::result)
      kernel_->chunks_are_rows();
    copy_result(*kernel_, result, result_layout, result_);
    kernel_->describe(fmt::format("{}{}, {} images × {} rows × {} channels in {} × {} × {} chunks",
                                  implementation_, constant_ ? ", weights packed" : "", g_.images,
                                  to().height, to().channels, split_.images, split_.rows, split_.channels));
    return std::move(kernel_);
  }

 private:
  struct Primitive {
    dnnl::primitive primitive;
    memory::desc weights, scratchpad;
    memory::desc scratchpad_desc() const { return scratchpad; }
  };

  const Side& from() const { return forward_ ? x_ : y_; }
  const Side& to() const { return forward_ ? y_ : x_; }

  template <typename Body>
  void each_chunk(Body body) {
    for (int64_t n = 0; n < split_.images; ++n)
      for (int64_t y = 0; y < split_.rows; ++y)
        for (int64_t c = 0; c < split_.channels; ++c) body(n, y, c);
  }

  // Where part i of several begins.
  int64_t first_image(int64_t i) const { return g_.images * i / split_.images; }
  int64_t first_row(int64_t i) const { return g_.out_height * i / split_.rows; }

  Key key_of(int64_t n, int64_t y) const {
    Slab slab = slab_of(g_, first_row(y), first_row(y + 1));
    // Rows that a stride leaves out at the end belong to it for oneDNN's 1×1 convolutions; no harm is done.
    if (forward_ && g_.kernel_height == 1 && slab.top == 0 && slab.bottom == 0)
      slab.in_height = std::min(slab.out_height * g_.stride_h, g_.in_height - slab.first_in);
    return {first_image(n + 1) - first_image(n), to().channels / split_.channels, slab};
  }

  /// Whether the constant weights of a 1×1 convolution are kept in panels of 16 channels by 16: a form that
  /// oneDNN reads whatever the sizes of maps and chunks are, about as fast as what it would choose for each.
  /// (With larger windows it would be up to 10 % slower on small maps.) Small weights may have as many forms
  /// as they like.
  bool in_panels() const {
    constexpr int64_t least_bytes = 128 << 10, panel = 16;
    return constant_ && forward_ && g_.dtype == f32 && g_.groups == 1 && g_.kernel_height == 1 &&
           g_.kernel_width == 1 && cpu::has_avx512() && constant_->bytes() >= least_bytes &&
           g_.in_channels % panel == 0 && g_.out_channels / split_.channels % panel == 0;
  }
  memory::desc panels(int64_t out_channels) const {
    return {{out_channels, g_.in_channels, g_.kernel_height, g_.kernel_width},
            memory::data_type::f32,
            memory::format_tag::OIhw16i16o};
  }

  const Primitive& primitive(const Key& k) {
    auto [at, fresh] = primitives_.try_emplace(k);
    if (!fresh) return at->second;
    const int64_t out = forward_ ? k.channels : g_.out_channels, in = forward_ ? g_.in_channels : k.channels;
    const memory::desc x = activations(g_, k.images, in, k.slab.in_height, g_.in_width),
                       y = sums(activations(g_, k.images, out, k.slab.out_height, g_.out_width)),
                       w = in_panels() ? panels(out)
                                       : own_weights(g_, g_.dtype, out / g_.groups, in / g_.groups);
    const memory::dims strides{g_.stride_h, g_.stride_w}, dilations{g_.dilation_h - 1, g_.dilation_w - 1},
        before{k.slab.top, g_.left}, after{k.slab.bottom, g_.right};
    const auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc desc(
        engine(), forward_ ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training, direct,
        x, w, y, strides, dilations, before, after, attributes());
    if (forward_) {
      at->second = {dnnl::convolution_forward(desc), desc.weights_desc(), desc.scratchpad_desc()};
      implementation_ = desc.impl_info_str();
    } else {
      const dnnl::convolution_backward_data::primitive_desc back(
          engine(), direct, x, w, y, strides, dilations, before, after, desc, attributes());
      at->second = {dnnl::convolution_backward_data(back), back.weights_desc(), back.scratchpad_desc()};
      implementation_ = back.impl_info_str();
    }
    return at->second;
  }

  /// What primitives write: f32 where more is done to it.
  memory::desc sums(const memory::desc& desc) const {
    if (!epilogue_.present) return desc;
    return {desc.get_dims(), memory::data_type::f32, memory::format_tag::nhwc};
  }

  /// The weights of channel part c in a primitive's format, packed once for all chunks that want the same.
  Place weights(const memory::desc& desc, int64_t c) {
    for (const Packed& p : packed_)
      if (p.part == c && p.desc == desc) return p.place;
    const int64_t part = to().channels / split_.channels, window = g_.kernel_height * g_.kernel_width;
    const int64_t out = forward_ ? part : g_.out_channels, in = forward_ ? g_.in_channels : part;
    const int64_t offset = c * part * window * (forward_ ? g_.in_channels / g_.groups : 1);
    if (in_panels()) {
      // Parts of the channels lie one after the other.
      if (!panels_)
        panels_ = kernel_->pack(plain_weights(g_, g_.dtype, g_.out_channels, g_.in_channels), 0,
                                panels(g_.out_channels), constant_);
      return *panels_ + offset * g_.dtype.bytes();
    }
    const memory::desc plain = plain_weights(g_, g_.dtype, out / g_.groups, in / g_.groups);
    packed_.push_back({desc, c, kernel_->pack(plain, offset * g_.dtype.bytes(), desc, constant_)});
    return packed_.back().place;
  }

  void add_chunk(int64_t n, int64_t y, int64_t c) {
    const Key k = key_of(n, y);
    const Primitive& p = primitive(k);
    const int64_t bytes = g_.dtype.bytes(), image = first_image(n);
    const Place source = operand_ + (image * from().height + (forward_ ? k.slab.first_in : 0)) *
                                        from().width * from().channels * bytes;
    const Place target =
        result_ + ((image * to().height + (forward_ ? first_row(y) : 0)) * to().width * to().channels +
                   c * k.channels) *
                      bytes;
    const memory::desc operand = activations(g_, k.images, from().channels,
                                             forward_ ? k.slab.in_height : g_.out_height, from().width),
                       part = sums(activations(g_, k.images, k.channels,
                                               forward_ ? k.slab.out_height : g_.in_height, to().width));
    kernel_->chunk();
    const bool whole = split_.channels == 1, apart = !whole || (epilogue_.present && bytes != 4);
    const Place written = apart ? kernel_->reserve_in_chunk(static_cast<int64_t>(part.get_size())) : target;
    kernel_->call(p.primitive, p,
                  {{forward_ ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, operand, source},
                   {DNNL_ARG_WEIGHTS, p.weights, weights(p.weights, c)},
                   {forward_ ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, part, written}});
    if (epilogue_.present) {
      kernel_->end_chunk({written, target, k.images * k.slab.out_height * to().width, k.channels,
                          c * k.channels, apart ? 4 * k.channels : bytes * to().channels,
                          bytes * to().channels});
      return;
    }
    if (whole) return;
    const int64_t row = to().width * to().channels;
    kernel_->copy(part, written,
                  {part.get_dims(), data_type(g_.dtype), {to().height * row, 1, row, to().channels}}, target);
  }

  struct Packed {
    memory::desc desc;
    int64_t part;
    Place place;
  };

  const KernelRequest& request_;
  const bool forward_;
  const Geometry g_;
  const Split split_;
  const Side x_, y_;
  const Array* constant_;
  const cpu::Epilogue epilogue_;
  std::unique_ptr<StagedKernel> kernel_ = std::make_unique<StagedKernel>();
  Place operand_, result_;
  std::map<Key, Primitive> primitives_;
  std::vector<Packed> packed_;
  std::optional<Place> panels_;  // of all channels
  std::string implementation_;
};

}  // namespace

std::unique_ptr<Kernel> build_convolution(const KernelRequest& request) {
  return Builder(request, ops::convolution_part(request.node) == ops::ConvolutionPart::forward).build();
}

}  // namespace millrace::onednn
