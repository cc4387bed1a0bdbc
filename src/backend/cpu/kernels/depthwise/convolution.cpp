#include "ops/convolution.h"

#include <algorithm>

#include <millrace/operator.h>

#include "backend/cpu/kernels/depthwise/kernels.h"
#include "backend/cpu/kernels/epilogue.h"
#include "base/format.h"
#include "target/shared_constants.h"

namespace millrace::cpu::depthwise {
namespace {

// Weights are turned to [taps, channels] in f32 or, for pairs, bf16; then every chunk computes some rows of
// the result, 7 columns at a time. The rows of the picture that a row of the result needs are still in the
// cache for the next one.
class Convolution : public ChunkedKernel, public RowKernel, public PackingKernel {
 public:
  Convolution(const Geometry& g, bool gradient, const Arithmetic& arithmetic, const Array* constant,
              const Epilogue& epilogue, const Array* bias)
      : g_(g),
        epilogue_(epilogue),
        arithmetic_(arithmetic),
        blocks_(g.in_channels, arithmetic, g.dtype == bf16, arithmetic.pairs),
        from_height_(gradient ? g.out_height : g.in_height),
        from_width_(gradient ? g.out_width : g.in_width),
        height_(gradient ? g.in_height : g.out_height),
        width_(gradient ? g.in_width : g.out_width),
        rows_(phases_of(height_of(g), gradient)),
        columns_(columns_of(width_of(g), gradient, blocks_.few(), false)),
        zeros_(static_cast<size_t>(pixel_bytes())),
        chunks_(std::clamp<int64_t>(static_cast<int64_t>(depthwise::nanoseconds(g) / 5e3), 1,
                                    std::min<int64_t>(g.images * height_, 32))) {
    if (!constant) return;
    packed_ = {
        shared_form(*constant, fmt::format("depthwise {} {}", arithmetic.name, blocks_.row_length()),
                    {blocks_.pairs() ? bf16 : f32, {taps() * blocks_.row_length()}},
                    [&](Array& packed) { pack(constant->data(), packed.data(), 0, blocks_.row_length()); })};
    if (!epilogue_.present) return;
    initial_.resize(static_cast<size_t>(blocks_.row_length()));
    for (int64_t i = 0; i < blocks_.row_length(); ++i)
      initial_[static_cast<size_t>(i)] = bias->as<float>()[static_cast<size_t>(blocks_.channel(i))];
  }

  int stages() const override { return packed_.empty() ? 2 : 1; }
  int64_t chunks(int stage) const override {
    return stages() - stage == 2 ? (blocks_.row_length() + places_a_chunk() - 1) / places_a_chunk() : chunks_;
  }
  double nanoseconds() const override { return depthwise::nanoseconds(g_); }

  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    void* const weights = packed_.empty() ? scratch : packed_[0].data();
    if (stages() - stage == 2) {
      const int64_t begin = chunk * places_a_chunk();
      return pack(operands[1], weights, begin, std::min(begin + places_a_chunk(), blocks_.row_length()));
    }
    const int64_t rows = most_rows();
    convolve_rows(rows * chunk / chunks_, rows * (chunk + 1) / chunks_, operands[0], weights, results[0]);
  }

  int64_t most_rows() const override { return g_.images * height_; }
  int64_t row_grain(int64_t rows) const override { return rows > 0 && most_rows() % rows == 0 ? 1 : 0; }
  int first_stages() const override { return stages() - 1; }
  void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                void* scratch) override {
    const int64_t each = most_rows() / rows;
    convolve_rows(begin * each, end * each, operands[0], packed_.empty() ? scratch : packed_[0].data(),
                  results[0]);
  }

  int64_t scratch_bytes() const override { return packed_.empty() ? taps() * tap_bytes() : 0; }
  std::string description() const override {
    return fmt::format("{}×{} of {} channels, {}, {} chunks", g_.kernel_height, g_.kernel_width,
                       g_.in_channels, arithmetic_.name, chunks_);
  }

 private:
  int64_t pixel_bytes() const { return g_.in_channels * g_.dtype.bytes(); }
  int64_t taps() const { return g_.kernel_height * g_.kernel_width; }
  int64_t tap_bytes() const { return (blocks_.pairs() ? 2 : 4) * blocks_.row_length(); }
  int64_t places_a_chunk() const { return std::max<int64_t>(16, 8192 / taps()); }

  void pack(const void* from, void* to, int64_t begin, int64_t end) const {
    for (int64_t tap = 0; tap < taps(); ++tap)
      for (int64_t i = begin; i < end; ++i) {
        const int64_t place = tap * blocks_.row_length() + i;
        if (blocks_.pairs()) {
          static_cast<uint16_t*>(to)[place] =
              static_cast<const uint16_t*>(from)[blocks_.channel_in_order(i) * taps() + tap];
          continue;
        }
        const int64_t at = blocks_.channel(i) * taps() + tap;
        static_cast<float*>(to)[place] = g_.dtype == f32
                                             ? static_cast<const float*>(from)[at]
                                             : bf16_to_float(static_cast<const uint16_t*>(from)[at]);
      }
  }

  void convolve_rows(int64_t begin, int64_t end, const void* from, void* weights, void* to) const {
    for (int64_t row = begin; row < end; ++row)
      convolve(static_cast<const char*>(from) + row / height_ * from_height_ * from_width_ * pixel_bytes(),
               row % height_, weights, static_cast<char*>(to) + row * width_ * pixel_bytes());
  }

  /// One row of the result.
  void convolve(const char* picture, int64_t row, void* weights, char* to) const {
    MetRow met[max_taps];
    const int64_t met_count = met_rows(rows_, row, from_height_, picture, from_width_ * pixel_bytes(), met);
    const bool narrow = g_.dtype == bf16;
    Pointers pointers;
    for (const Columns& c : columns_) {
      const Arithmetic::Run compute = blocks_.few() ? arithmetic_.convolve_few[narrow][c.width]
                                                    : arithmetic_.convolve[narrow][c.shape][c.width];
      for (int64_t i = 0; i < c.count; i += c.strip()) {
        // The last columns are computed twice where they do not fill a strip.
        const int64_t begin = std::min(i, c.count - c.strip());
        Strip strip = strip_of(c, begin, met, met_count, pixel_bytes(), zeros_.data(), weights, tap_bytes(),
                               g_.kernel_width, pointers);
        for (int64_t j = 0; j < c.strip(); ++j)
          pointers.pixels[j] = to + (c.first + (begin + j) * c.step) * pixel_bytes();
        strip.channels = g_.in_channels;
        strip.initial = initial_.empty() ? nullptr : initial_.data();
        strip.low = epilogue_.low;
        strip.high = epilogue_.high;
        strip.ahead = rows_[0].stride * from_width_ * pixel_bytes();
        compute(strip);
      }
    }
  }

  Geometry g_;
  Epilogue epilogue_;
  const Arithmetic& arithmetic_;
  Blocks blocks_;
  int64_t from_height_, from_width_, height_, width_;
  std::vector<Phase> rows_;
  std::vector<Columns> columns_;
  std::vector<char> zeros_;
  int64_t chunks_;
  std::vector<float> initial_;  // constant bias
};

}  // namespace

std::unique_ptr<Kernel> build_convolution(const KernelRequest& request, const Arithmetic& arithmetic) {
  return std::make_unique<Convolution>(
      geometry_of(request.graph, request.node),
      ops::convolution_part(request.node) == ops::ConvolutionPart::input_gradient, arithmetic,
      request.graph.constant_value(request.node.operands[1]), epilogue_of(request.node),
      request.graph.constant_value(request.node.operands.back()));
}

}  // namespace millrace::cpu::depthwise
