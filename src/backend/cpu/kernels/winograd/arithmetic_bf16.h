// The transforms of Winograd's F(2×2, 3×3) (Lavin and Gray, arXiv 1509.09308) on bf16 and AVX-512: tiles are
// of 4×4 points; transforms add in f32 and round to bf16, and gemm's blocks multiply. Pictures are
// channels-last. Packed elements count in units: pairs of bf16 along the sum. Nothing here may be called
// without AVX-512 and its BF16 instructions.
#pragma once

#include <cstdint>

namespace millrace::cpu::winograd::narrow {

constexpr int64_t tile = 2;     // side of the part of a result that a tile makes
constexpr int64_t points = 16;  // of a tile

/// One channels-last picture [height, width, channels] of bf16.
struct Picture {
  uint16_t* data;
  int64_t height, width, channels;
};

/// v[point][c] = (Bᵀ d B) of the 4×4 elements d at (row, column), which may lie outside of the picture (zeros
/// there), for all channels, with zeros up to the next multiple of 16; points lie point_stride bf16 apart.
void transform_input(const Picture& x, int64_t row, int64_t column, uint16_t* v, int64_t point_stride);

/// Elements at (row, column) of a picture.
struct Spot {
  Picture picture;
  int64_t row, column;
};

/// The same for two tiles side by side, as units: of channels [16·i, 16·i + 16) at v + point·point_stride +
/// i/2·pair_stride, and odd_offset behind it when i is odd. The second tile is zero when `two` is false.
void transform_input_pair(const Spot& first, const Spot& second, bool two, uint32_t* v, int64_t point_stride,
                          int64_t odd_offset, int64_t pair_stride);

/// The same of (A d Aᵀ) of the 2×2 elements d of a result's gradient.
void transform_gradient_pair(const Spot& first, const Spot& second, bool two, uint32_t* z,
                             int64_t point_stride, int64_t odd_offset, int64_t pair_stride);

/// What is done to results before they are stored: nothing where `bias` is null. Else bias[channel] and,
/// where there is one, the element of a picture like y are added, and the sum limited; NaN stays NaN.
struct OutputEnd {
  const float* bias;
  const uint16_t* added;
  float low, high;
};

/// Writes (Aᵀ m A), as far as it lies in the picture, into the 2×2 elements at (row, column), channels
/// [begin, begin + count) of it, count ≤ 32; m[point][c] counts from `begin`.
void transform_output(const float* m, int64_t point_stride, const Picture& y, int64_t row, int64_t column,
                      int64_t begin, int64_t count, const OutputEnd& end);

/// u[point][c] = (G g Gᵀ) of the windows g[tap][c], taps tap_stride and points point_stride bf16 apart; the
/// window from the last tap to the first when `flipped`.
void transform_weights(const uint16_t* g, int64_t tap_stride, bool flipped, int64_t channels, uint16_t* u,
                       int64_t point_stride);

/// w[tap][c] = (Gᵀ d G) of the sums d[point][c].
void transform_weight_gradient(const float* d, int64_t point_stride, int64_t channels, uint16_t* w,
                               int64_t tap_stride);

}  // namespace millrace::cpu::winograd::narrow
