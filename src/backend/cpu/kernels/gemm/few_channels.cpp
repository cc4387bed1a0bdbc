#include <algorithm>
#include <cstring>

#include <millrace/operator.h>

#include "backend/cpu/kernels/epilogue.h"
#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/geometry.h"
#include "backend/cpu/kernels/vectors.h"
#include "base/format.h"
#include "ops/convolution.h"
#include "target/shared_constants.h"
#include "target/slot.h"

namespace millrace::cpu {
namespace gemm {
namespace {

constexpr int64_t kMostChannels = 4;
constexpr int64_t kSlack = 64;  // units behind a row that interleaving may write

/// By vectors: tiles would read what lies between the rows.
const Arithmetic& vector_arithmetic(DType dtype) {
  return dtype == f32 ? product_arithmetic(f32) : arithmetic_bf16();
}

// The first layer of a network on pictures: constant weights [out, in ≤ 4, kh, kw]. A chunk is some rows of
// the result. It copies the rows of the picture that they meet, pixel by pixel (the channels of a pixel are
// whole units) and between zeros, so that the left side of the product need not be gathered: what a result
// meets in a row of the picture is contiguous, and begins `stride` pixels behind what its neighbour meets.
class FewChannels : public ChunkedKernel, public PackingKernel {
 public:
  FewChannels(const Geometry& g, const Array& weights, const Epilogue& epilogue)
      : g_(g),
        arithmetic_(vector_arithmetic(g.dtype)),
        epilogue_(epilogue),
        pixel_units_((g.in_channels + arithmetic_.unit - 1) / arithmetic_.unit),
        row_units_(g.kernel_width * pixel_units_),
        columns_((g.out_width - 1) * g.stride_w + g.kernel_width),
        buffer_row_(columns_ * pixel_units_ + kSlack),
        parts_(parts_of(g)),
        slots_(chunks(0)) {
    const int64_t panel = arithmetic_.panel, columns = round_up(g.out_channels, panel);
    packed_ = {shared_form(weights, fmt::format("few channels, panels of {}", panel),
                           {f32, {columns * depth}},
                           [&](Array& packed) { pack(weights, static_cast<char*>(packed.data())); })};
  }

  std::unique_ptr<Kernel> another() const override { return std::make_unique<FewChannels>(*this); }
  int64_t chunks(int /*stage*/) const override { return g_.images * parts_; }
  double nanoseconds() const override { return g_.work() / arithmetic_.rate; }
  int64_t slots_bytes() const override { return 4 * slots_.count() * slot_units(); }
  std::string description() const override {
    return fmt::format("{} parts of an image, rows of {} × {} elements, packed before", parts_,
                       g_.kernel_height, row_units_ * arithmetic_.unit);
  }

  void run_chunk(int /*stage*/, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    const int64_t image = chunk / parts_, part = chunk % parts_, bytes = arithmetic_.bytes;
    const int64_t begin = g_.out_height * part / parts_, end = g_.out_height * (part + 1) / parts_;
    const Slot slot(slots_);
    Unit* const rows = static_cast<Unit*>(scratch) + slot.index() * slot_units();
    const int64_t plane = g_.in_height * g_.in_width * bytes;
    const char* const picture = static_cast<const char*>(operands[0]) + image * g_.in_channels * plane;
    const int64_t first = begin * g_.stride_h - g_.top;
    for (int64_t r = 0; r < (end - begin - 1) * g_.stride_h + g_.kernel_height; ++r)
      copy_row(picture, first + r, rows + r * buffer_row_);
    Finish finish{.step = g_.out_channels * bytes,
                  .bias = epilogue_.at(operands, 0, 0).bias,
                  .low = epilogue_.low,
                  .high = epilogue_.high};
    Left left{.blocks = nullptr,
              .by_rows = true,
              .rows = g_.out_width,
              .step = g_.stride_w * pixel_units_,
              .segments = g_.kernel_height,
              .segment_step = buffer_row_};
    for (int64_t y = begin; y < end; ++y) {
      left.blocks = rows + (y - begin) * g_.stride_h * buffer_row_;
      finish.to = static_cast<char*>(results[0]) + (image * g_.out_height + y) * g_.out_width * finish.step;
      multiply_blocks(arithmetic_, left, static_cast<const Unit*>(packed_[0].data()),
                      g_.kernel_height * row_units_, {nullptr, 0, false}, g_.out_channels, {}, &finish);
    }
  }

 private:
  /// Chunks of about 10 µs, whose rows of the picture stay in the first caches.
  static int64_t parts_of(const Geometry& g) {
    const double work = 2.0 * static_cast<double>(g.out_height * g.out_width * g.out_channels) *
                        static_cast<double>(g.in_channels * g.kernel_height * g.kernel_width);
    const auto wanted = static_cast<int64_t>(work / (g.dtype == f32 ? 1e6 : 2e6));
    const int64_t fit = (g.out_height * g.stride_h * g.in_width * kMostChannels * g.dtype.bytes()) >> 16;
    return std::clamp<int64_t>(round_up(std::max(wanted, fit), 4), 1, g.out_height);
  }
  /// Rows of the picture for the longest part.
  int64_t most_rows() const {
    return ((g_.out_height + parts_ - 1) / parts_ - 1) * g_.stride_h + g_.kernel_height;
  }
  int64_t slot_units() const { return round_up(most_rows() * buffer_row_ + kSlack, 16); }

  /// Row `y` of the picture, which may lie outside of it.
  void copy_row(const char* picture, int64_t y, Unit* to) const {
    const int64_t count = y < 0 || y >= g_.in_height ? 0 : std::min(g_.in_width, columns_ - g_.left);
    const int64_t left = count > 0 ? g_.left : 0;
    std::memset(to, 0, static_cast<size_t>(left * pixel_units_) * sizeof(Unit));
    if (count > 0) {
      const char* from[kMostChannels];
      for (int64_t c = 0; c < g_.in_channels; ++c)
        from[c] = picture + ((c * g_.in_height + y) * g_.in_width) * arithmetic_.bytes;
      arithmetic_.interleave(from, g_.in_channels, count, to + left * pixel_units_);
    }
    Unit* const behind = to + (left + std::max<int64_t>(count, 0)) * pixel_units_;
    std::memset(behind, 0, static_cast<size_t>(to + columns_ * pixel_units_ - behind) * sizeof(Unit));
  }

  /// From [out, in, kh, kw] to panels of [kh, kw, channels of a pixel] units × columns.
  void pack(const Array& weights, char* to) const {
    const int64_t bytes = arithmetic_.bytes, unit = arithmetic_.unit, panel = arithmetic_.panel,
                  taps = g_.kernel_height * g_.kernel_width;
    for (int64_t n = 0; n < g_.out_channels; ++n)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t c = 0; c < g_.in_channels; ++c) {
          const int64_t at = n / panel * depth * panel + (tap * pixel_units_ + c / unit) * panel + n % panel;
          std::memcpy(
              to + at * static_cast<int64_t>(sizeof(Unit)) + c % unit * bytes,
              static_cast<const char*>(weights.data()) + ((n * g_.in_channels + c) * taps + tap) * bytes,
              static_cast<size_t>(bytes));
        }
  }

  Geometry g_;
  const Arithmetic& arithmetic_;
  Epilogue epilogue_;
  int64_t pixel_units_, row_units_;  // of what a result meets in a row of the picture
  int64_t columns_;                  // of the picture, with its padding, as far as they are met
  int64_t buffer_row_;               // units
  int64_t parts_;                    // of an image
  Slots slots_;
};

std::unique_ptr<Kernel> build_few_channels(const KernelRequest& request) {
  return std::make_unique<FewChannels>(geometry_of(request.graph, request.node),
                                       *request.graph.constant_value(request.node.operands[1]),
                                       epilogue_of(request.node));
}

/// Takes conv2d and fused_conv2d of pictures of up to 4 channels, as they come from outside: plane by plane.
class FewChannelsProvider : public ProductProvider {
 public:
  FewChannelsProvider()
      : ProductProvider("only 2-D convolutions",
                        {{"conv2d", build_few_channels}, {"fused_conv2d", build_few_channels}}) {}
  std::string name() const override { return "few-channels"; }

  std::optional<std::string> why_not_this(const Graph& graph, const Node& node) const override {
    const DType dtype = node.types[0].dtype;
    if (auto reason = why_no_products(dtype)) return reason;
    if (node.operands.size() == 4) return "only a bias, no residual";
    if (!graph.constant_value(node.operands[1]) ||
        (node.operands.size() == 3 && !graph.constant_value(node.operands[2])))
      return "only constant weights and bias";
    const Geometry g = geometry_of(graph, node);
    if (is_empty(graph, node)) return "an operand or the result is empty";
    if (g.groups != 1 || g.dilation_h != 1 || g.dilation_w != 1) return "only one group and dilation 1";
    if (g.in_channels > kMostChannels) return "more than 4 channels";
    if (g.out_channels < block_columns / 2 || g.out_width < block_rows)
      return "too few results for blocks of 14×32";
    if (g.kernel_height * g.kernel_width * g.in_channels < 8) return "too short sums";
    // A panel of weights and rows of the picture share the first-level cache.
    const int64_t most = dtype == f32 ? 128 * block_columns / vector_arithmetic(f32).panel : depth;
    if (g.kernel_height * g.kernel_width * kMostChannels > most)
      return "sums that are too long for the nearest cache";
    if (g.left >= (g.out_width - 1) * g.stride_w + g.kernel_width)
      return "only results that meet the picture";
    return std::nullopt;
  }

  /// On AVX2 oneDNN's are as fast where there are many results.
  bool contested(const Graph& /*graph*/, const Node& node) const override {
    return node.types[0].dtype == f32 && !has_avx512();
  }

  LayoutWish layouts(const Graph& graph, const Node& node) const override {
    LayoutWish wish = ProductProvider::layouts(graph, node);
    wish.operands[0] = Layout();
    return wish;
  }
};

}  // namespace
}  // namespace gemm

MILLRACE_PROVIDER(few_channels){.name = "few-channels",
                                .doc = "the first convolution of a network on pictures, as a product",
                                .place = 15,
                                .make = make_provider<gemm::FewChannelsProvider>};

}  // namespace millrace::cpu
