// Compiled for AVX-512 whatever the rest of the program is compiled for, so nothing but intrinsics may be
// included: an inline function of the library compiled here could be linked into the rest.
#include <immintrin.h>

#include "backend/cpu/kernels/winograd/arithmetic.h"

namespace millrace::cpu::winograd {
namespace {

using V = __m512;

constexpr int64_t side = 8;  // of a tile's points

inline V times(float factor, V x) { return _mm512_mul_ps(_mm512_set1_ps(factor), x); }
inline V add(V x, V y) { return _mm512_add_ps(x, y); }
inline V sub(V x, V y) { return _mm512_sub_ps(x, y); }
/// factor·x + y
inline V mad(float factor, V x, V y) { return _mm512_fmadd_ps(_mm512_set1_ps(factor), x, y); }

inline __mmask16 lanes(int64_t count) {
  return count >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1U << count) - 1);
}

inline void input_side(V (&d)[8]) {
  const V d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3], d4 = d[4], d5 = d[5], d6 = d[6], d7 = d[7];
  const V one = mad(-4.25F, d4, add(d2, d6)), odd1 = mad(-4.25F, d3, add(d1, d5));
  const V two = mad(0.25F, mad(-5, d4, d2), d6), odd2 = mad(0.5F, mad(-5, d3, d1), times(2, d5));
  const V half = mad(4, mad(-1.25F, d4, d2), d6), odd_half = mad(2, mad(-1.25F, d3, d1), times(0.5F, d5));
  d[0] = mad(5.25F, sub(d4, d2), sub(d0, d6));
  d[1] = add(one, odd1);
  d[2] = sub(one, odd1);
  d[3] = add(two, odd2);
  d[4] = sub(two, odd2);
  d[5] = add(half, odd_half);
  d[6] = sub(half, odd_half);
  d[7] = mad(5.25F, sub(d3, d5), sub(d7, d1));
}

inline void output_side(V (&m)[8]) {
  const V s1 = add(m[1], m[2]), d1 = sub(m[1], m[2]), s2 = add(m[3], m[4]), d2 = sub(m[3], m[4]),
          s3 = add(m[5], m[6]), d3 = sub(m[5], m[6]), m7 = m[7];
  m[0] = add(add(m[0], s1), add(s2, s3));
  m[1] = mad(0.5F, d3, mad(2, d2, d1));
  m[2] = mad(0.25F, s3, mad(4, s2, s1));
  m[3] = add(mad(0.125F, d3, mad(8, d2, d1)), m7);
}

inline void weight_side(const V (&g)[5], V (&u)[8]) {
  const V even1 = add(add(g[0], g[2]), g[4]), odd1 = add(g[1], g[3]);
  const V even2 = mad(16, g[4], mad(4, g[2], g[0])), odd2 = mad(8, g[3], times(2, g[1]));
  const V even_half = mad(0.0625F, g[4], mad(0.25F, g[2], g[0])),
          odd_half = mad(0.125F, g[3], times(0.5F, g[1]));
  u[0] = g[0];
  u[1] = times(-2.0F / 9, add(even1, odd1));
  u[2] = times(-2.0F / 9, sub(even1, odd1));
  u[3] = times(1.0F / 90, add(even2, odd2));
  u[4] = times(1.0F / 90, sub(even2, odd2));
  u[5] = times(32.0F / 45, add(even_half, odd_half));
  u[6] = times(32.0F / 45, sub(even_half, odd_half));
  u[7] = g[4];
}

}  // namespace

void transform_input_5x5(const Picture& x, int64_t row, int64_t column, float* v, int64_t point_stride) {
  const bool inside = row >= 0 && column >= 0 && row + side <= x.height && column + side <= x.width;
  for (int64_t c = 0; c < x.channels; c += 16) {
    const __mmask16 mask = lanes(x.channels - c);
    V half[side][side];  // [column][point along it]
    for (int64_t j = 0; j < side; ++j) {
      V d[8];
#pragma GCC unroll 8
      for (int64_t i = 0; i < side; ++i) {
        const bool there =
            inside || (row + i >= 0 && row + i < x.height && column + j >= 0 && column + j < x.width);
        const float* const from = x.data + ((row + i) * x.width + column + j) * x.channels + c;
        d[i] = there ? _mm512_maskz_loadu_ps(mask, from) : _mm512_setzero_ps();
      }
      input_side(d);
#pragma GCC unroll 8
      for (int64_t i = 0; i < side; ++i) half[j][i] = d[i];
    }
    for (int64_t i = 0; i < side; ++i) {
      V d[8];
#pragma GCC unroll 8
      for (int64_t j = 0; j < side; ++j) d[j] = half[j][i];
      input_side(d);
#pragma GCC unroll 8
      for (int64_t j = 0; j < side; ++j) _mm512_storeu_ps(v + (side * i + j) * point_stride + c, d[j]);
    }
  }
}

void transform_output_5x5(const float* m, int64_t point_stride, const Picture& y, int64_t row, int64_t column,
                          int64_t begin, int64_t count, const OutputEnd& end) {
  const int64_t rows = y.height - row < tile ? y.height - row : tile,
                columns = y.width - column < tile ? y.width - column : tile;
  const V low = _mm512_set1_ps(end.low), high = _mm512_set1_ps(end.high);
  for (int64_t c = 0; c < count; c += 16) {
    const __mmask16 mask = lanes(count - c);
    V half[side][tile];  // [column of points][row of results]
    for (int64_t j = 0; j < side; ++j) {
      V d[8];
#pragma GCC unroll 8
      for (int64_t i = 0; i < side; ++i) d[i] = _mm512_loadu_ps(m + (side * i + j) * point_stride + c);
      output_side(d);
#pragma GCC unroll 4
      for (int64_t i = 0; i < tile; ++i) half[j][i] = d[i];
    }
    const V bias = end.bias ? _mm512_maskz_loadu_ps(mask, end.bias + begin + c) : _mm512_setzero_ps();
    for (int64_t i = 0; i < rows; ++i) {
      V d[8];
#pragma GCC unroll 8
      for (int64_t j = 0; j < side; ++j) d[j] = half[j][i];
      output_side(d);
      const int64_t first = ((row + i) * y.width + column) * y.channels + begin + c;
      for (int64_t j = 0; j < columns; ++j) {
        V sum = d[j];
        if (end.bias) {
          sum = add(sum, bias);
          if (end.added) sum = add(sum, _mm512_maskz_loadu_ps(mask, end.added + first + j * y.channels));
          // In this order NaN stays.
          sum = _mm512_min_ps(high, _mm512_max_ps(low, sum));
        }
        _mm512_mask_storeu_ps(y.data + first + j * y.channels, mask, sum);
      }
    }
  }
}

void transform_weights_5x5(const float* w, int64_t row_stride, int64_t column_stride, bool flipped,
                           int64_t rows, int64_t columns, float* u, int64_t point_stride) {
  const auto step = static_cast<int>(column_stride);
  const __m512i offsets = _mm512_mullo_epi32(
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32(step));
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t n = 0; n < panel; n += 16) {
      const __mmask16 mask = lanes(columns - n > 0 ? columns - n : 0);
      const float* const from = w + k * row_stride + n * column_stride;
      V half[5][side];  // [column][point along it]
      for (int64_t j = 0; j < 5; ++j) {
        V g[5];
#pragma GCC unroll 5
        for (int64_t i = 0; i < 5; ++i) {
          const int64_t e = 5 * i + j;
          g[i] =
              _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, offsets, from + (flipped ? 24 - e : e), 4);
        }
        weight_side(g, half[j]);
      }
      for (int64_t i = 0; i < side; ++i) {
        const V g[5] = {half[0][i], half[1][i], half[2][i], half[3][i], half[4][i]};
        V p[8];
        weight_side(g, p);
#pragma GCC unroll 8
        for (int64_t j = 0; j < side; ++j)
          _mm512_storeu_ps(u + (side * i + j) * point_stride + k * panel + n, p[j]);
      }
    }
}

}  // namespace millrace::cpu::winograd
