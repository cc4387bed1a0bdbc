#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/depthwise/kernels.h"
#include "base/format.h"

namespace millrace::cpu::depthwise {
namespace {

// Every chunk has sums [taps, channels] of its own over some rows of dy; they are added at the end, in order.
class WeightGradient : public ChunkedKernel {
 public:
  WeightGradient(const Geometry& g, const Arithmetic& arithmetic)
      : g_(g),
        arithmetic_(arithmetic),
        blocks_(g.in_channels, arithmetic, g.dtype == bf16),
        rows_(phases_of(height_of(g), false)),
        columns_(columns_of(width_of(g), false, blocks_.few(), true)[0]),
        zeros_(static_cast<size_t>(pixel_bytes())),
        splits_(std::clamp<int64_t>(static_cast<int64_t>(depthwise::nanoseconds(g) / 40e3), 1,
                                    std::min<int64_t>(g.images * g.out_height, 16))) {}

  int stages() const override { return 2; }
  int64_t chunks(int stage) const override {
    return stage == 0 ? splits_ : (blocks_.row_length() + places_a_chunk() - 1) / places_a_chunk();
  }
  double nanoseconds() const override { return depthwise::nanoseconds(g_); }

  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override {
    auto* const sums = static_cast<float*>(scratch);
    if (stage == 1) return finish(sums, results[0], chunk);
    float* const own = sums + chunk * sum_size();
    std::memset(own, 0, static_cast<size_t>(sum_size()) * sizeof(float));
    const int64_t rows = g_.images * g_.out_height;
    for (int64_t row = rows * chunk / splits_; row < rows * (chunk + 1) / splits_; ++row)
      accumulate(static_cast<const char*>(operands[0]) +
                     row / g_.out_height * g_.in_height * g_.in_width * pixel_bytes(),
                 row % g_.out_height, static_cast<char*>(operands[1]) + row * g_.out_width * pixel_bytes(),
                 own);
  }

  int64_t scratch_bytes() const override { return 4 * splits_ * sum_size(); }
  std::string description() const override {
    return fmt::format("{}×{} of {} channels, {}, {} partial sum{}", g_.kernel_height, g_.kernel_width,
                       g_.in_channels, arithmetic_.name, splits_, splits_ == 1 ? "" : "s");
  }

 private:
  int64_t pixel_bytes() const { return g_.in_channels * g_.dtype.bytes(); }
  int64_t taps() const { return g_.kernel_height * g_.kernel_width; }
  int64_t sum_size() const { return taps() * blocks_.row_length(); }
  int64_t places_a_chunk() const { return std::max<int64_t>(16, 32768 / (taps() * splits_)); }

  /// Adds what one row of dy gives.
  void accumulate(const char* picture, int64_t row, char* dy, float* sums) const {
    MetRow met[max_taps];
    const int64_t met_count = met_rows(rows_, row, g_.in_height, picture, g_.in_width * pixel_bytes(), met);
    const bool narrow = g_.dtype == bf16;
    const Arithmetic::Run compute =
        blocks_.few() ? arithmetic_.accumulate_few[narrow] : arithmetic_.accumulate[narrow][columns_.shape];
    Pointers pointers;
    for (int64_t begin = 0; begin < columns_.count; begin += columns_.strip()) {
      Strip strip = strip_of(columns_, begin, met, met_count, pixel_bytes(), zeros_.data(), sums,
                             4 * blocks_.row_length(), g_.kernel_width, pointers);
      for (int64_t i = 0; i < columns_.strip(); ++i)
        pointers.pixels[i] =
            begin + i < columns_.count ? dy + (begin + i) * pixel_bytes() : const_cast<char*>(zeros_.data());
      strip.channels = g_.in_channels;
      strip.next = g_.out_width * pixel_bytes();
      strip.ahead = g_.stride_h * g_.in_width * pixel_bytes();
      compute(strip);
    }
  }

  void finish(const float* sums, void* result, int64_t chunk) const {
    const int64_t begin = chunk * places_a_chunk(),
                  end = std::min(begin + places_a_chunk(), blocks_.row_length());
    for (int64_t tap = 0; tap < taps(); ++tap)
      for (int64_t i = begin; i < end; ++i) {
        if (!blocks_.first(i)) continue;
        float sum = 0;
        for (int64_t s = 0; s < splits_; ++s) sum += sums[s * sum_size() + tap * blocks_.row_length() + i];
        const int64_t at = blocks_.channel(i) * taps() + tap;
        if (g_.dtype == f32)
          static_cast<float*>(result)[at] = sum;
        else
          static_cast<uint16_t*>(result)[at] = float_to_bf16(sum);
      }
  }

  Geometry g_;
  const Arithmetic& arithmetic_;
  Blocks blocks_;
  std::vector<Phase> rows_;
  Columns columns_;
  std::vector<char> zeros_;
  int64_t splits_;
};

}  // namespace

std::unique_ptr<Kernel> build_weight_gradient(const KernelRequest& request, const Arithmetic& arithmetic) {
  return std::make_unique<WeightGradient>(geometry_of(request.graph, request.node), arithmetic);
}

}  // namespace millrace::cpu::depthwise
