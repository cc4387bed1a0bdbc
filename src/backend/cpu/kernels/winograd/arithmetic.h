// The arithmetic of Winograd's F(4×4, 3×3) (Lavin and Gray, arXiv 1509.09308, with the points 0, ±1, ±2, ∞)
// on f32 and AVX-512: transforms of tiles, and products of matrices. Tiles are of 6×6 points; of each, arrays
// keep one matrix a point, `point_stride` elements apart. Pictures are channels-last. Nothing here may be
// called without AVX-512F.
#pragma once

#include <cstdint>

namespace millrace::cpu::winograd {

constexpr int64_t tile = 4;         // side of the part of a result that a tile makes
constexpr int64_t points = 36;      // of a tile
constexpr int64_t points_5x5 = 64;  // of a tile for windows of 5×5
constexpr int64_t panel = 32;       // columns that products go by; matrices are padded to whole panels

/// One channels-last picture [height, width, channels].
struct Picture {
  float* data;
  int64_t height, width, channels;
};

/// v[point][c] = (Bᵀ d B) of the 6×6 elements d at (row, column), which may lie outside the picture (zeros
/// there), for all channels; with zeros up to the next multiple of 16.
void transform_input(const Picture& x, int64_t row, int64_t column, float* v, int64_t point_stride);

/// z[point][c] = (A d Aᵀ) of the 4×4 elements d of a result's gradient at (row, column).
void transform_gradient(const Picture& dy, int64_t row, int64_t column, float* z, int64_t point_stride);

/// What is done to results before they are stored: nothing where `bias` is null. Else bias[channel] and,
/// where there is one, the element of a picture like y are added, and the sum limited; NaN stays NaN.
struct OutputEnd {
  const float* bias;
  const float* added;
  float low, high;
};

/// Writes (Aᵀ m A), as far as it lies in the picture, into the 4×4 elements at (row, column), channels
/// [begin, begin + count) of it; m[point][c] counts from `begin`.
void transform_output(const float* m, int64_t point_stride, const Picture& y, int64_t row, int64_t column,
                      int64_t begin, int64_t count, const OutputEnd& end);

/// u[point][k][n] = (G g Gᵀ) for n in one panel and k in [0, rows): the 3×3 elements g of row k and column n
/// begin at w + k·row_stride + n·column_stride; from the last to the first when `flipped`. Columns from
/// `columns` on become 0.
void transform_weights(const float* w, int64_t row_stride, int64_t column_stride, bool flipped, int64_t rows,
                       int64_t columns, float* u, int64_t point_stride);

/// The same for F(4×4, 5×5), with the points 0, ±1, ±2, ±1/2, ∞: tiles of 8×8 points.
void transform_input_5x5(const Picture& x, int64_t row, int64_t column, float* v, int64_t point_stride);
void transform_output_5x5(const float* m, int64_t point_stride, const Picture& y, int64_t row, int64_t column,
                          int64_t begin, int64_t count, const OutputEnd& end);
void transform_weights_5x5(const float* w, int64_t row_stride, int64_t column_stride, bool flipped,
                           int64_t rows, int64_t columns, float* u, int64_t point_stride);

/// The 3×3 elements at w + k·row_stride + n·column_stride = (Gᵀ d G) of d[point][k][n], for n in [0,
/// columns).
void transform_weight_gradient(const float* d, int64_t point_stride, int64_t d_row_stride, int64_t rows,
                               int64_t columns, float* w, int64_t row_stride, int64_t column_stride);

/// c[rows, 32] = a[rows, depth] · b[depth, 32]; lda, ldb and ldc elements lie between rows.
void multiply(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t rows, int64_t depth, float* c,
              int64_t ldc);

/// c[rows, 32] += a[depth, rows]ᵀ · b[depth, 32].
void multiply_transposed(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t rows,
                         int64_t depth, float* c, int64_t ldc);

}  // namespace millrace::cpu::winograd
