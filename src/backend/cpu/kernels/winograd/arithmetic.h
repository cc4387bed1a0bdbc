// The arithmetic of Winograd's F(4×4, 3×3) and F(4×4, 5×5) (Lavin and Gray, arXiv 1509.09308, with the points
// 0, ±1, ±2, ∞, and ±1/2 for windows of 5×5) on f32: transforms of tiles, and products of matrices. Tiles are
// of 6×6 or 8×8 points; of each, arrays keep one matrix a point, `point_stride` elements apart. Pictures are
// channels-last.
#pragma once

#include <cstdint>

namespace millrace::cpu::winograd {

constexpr int64_t tile = 4;         // side of the part of a result that a tile makes
constexpr int64_t points = 36;      // of a tile
constexpr int64_t points_5x5 = 64;  // of a tile for windows of 5×5

/// One channels-last picture [height, width, channels].
struct Picture {
  float* data;
  int64_t height, width, channels;
};

/// What is done to results before they are stored: nothing where `bias` is null. Else bias[channel] and,
/// where there is one, the element of a picture like y are added, and the sum limited; NaN stays NaN.
struct OutputEnd {
  const float* bias;
  const float* added;
  float low, high;
};

/// The transforms that forward convolutions and data gradients need, for one size of windows.
struct Filter {
  int64_t points;

  /// v[point][c] = (Bᵀ d B) of the elements d at (row, column), which may lie outside the picture (zeros
  /// there), for all channels; with zeros up to a whole vector.
  void (*input)(const Picture& x, int64_t row, int64_t column, float* v, int64_t point_stride);

  /// Writes (Aᵀ m A), as far as it lies in the picture, into the 4×4 elements at (row, column), channels
  /// [begin, begin + count) of it; m[point][c] counts from `begin`.
  void (*output)(const float* m, int64_t point_stride, const Picture& y, int64_t row, int64_t column,
                 int64_t begin, int64_t count, const OutputEnd& end);

  /// u[point][k][n] = (G g Gᵀ) for n in one panel and k in [0, rows): the windows g of row k and column n
  /// begin at w + k·row_stride + n·column_stride; from the last element to the first when `flipped`. Columns
  /// from `columns` on become 0.
  void (*weights)(const float* w, int64_t row_stride, int64_t column_stride, bool flipped, int64_t rows,
                  int64_t columns, float* u, int64_t point_stride);
};

/// One instruction set's.
struct Arithmetic {
  int64_t lanes;       // of a vector
  int64_t panel;       // columns that products go by, two vectors; matrices are padded to whole panels
  int64_t block_rows;  // of products that sum in registers
  // Blocks of tiles that a chunk has: with few channels, some, and many. Tiles of that many should stay in a
  // second-level cache as CPUs without larger vectors have it.
  int64_t chunk_blocks[3];
  Filter three, five;

  /// z[point][c] = (A d Aᵀ) of the 4×4 elements d of a result's gradient at (row, column); with zeros up to a
  /// whole vector.
  void (*gradient)(const Picture& dy, int64_t row, int64_t column, float* z, int64_t point_stride);

  /// The 3×3 elements at w + k·row_stride + n·column_stride = (Gᵀ d G) of d[point][k][n], for n in [0,
  /// columns).
  void (*weight_gradient)(const float* d, int64_t point_stride, int64_t d_row_stride, int64_t rows,
                          int64_t columns, float* w, int64_t row_stride, int64_t column_stride);

  /// c[rows, panel] = a[rows, depth] · b[depth, panel], or added to c; lda and ldc elements lie between rows.
  void (*multiply)(const float* a, int64_t lda, const float* b, int64_t rows, int64_t depth, float* c,
                   int64_t ldc, bool add);

  /// c[rows, panel] += a[depth, rows]ᵀ · b[depth, panel].
  void (*multiply_transposed)(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t rows,
                              int64_t depth, float* c, int64_t ldc);

  int64_t whole_panels(int64_t columns) const { return (columns + panel - 1) / panel * panel; }
  int64_t whole_vectors(int64_t channels) const { return (channels + lanes - 1) / lanes * lanes; }
};

/// Each may be called only where the CPU has its instructions.
const Arithmetic& arithmetic_avx2();
const Arithmetic& arithmetic_avx512();

}  // namespace millrace::cpu::winograd
