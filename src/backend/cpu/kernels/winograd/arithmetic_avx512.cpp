// Compiled for AVX-512 whatever the rest of the program is compiled for, so nothing but intrinsics may be
// included: an inline function of the library compiled here could be linked into the rest.
#include <immintrin.h>

#include "backend/cpu/kernels/winograd/arithmetic.h"

namespace millrace::cpu::winograd {
namespace {

using V = __m512;

inline V times(float factor, V x) { return _mm512_mul_ps(_mm512_set1_ps(factor), x); }
inline V add(V x, V y) { return _mm512_add_ps(x, y); }
inline V sub(V x, V y) { return _mm512_sub_ps(x, y); }
/// factor·x + y
inline V mad(float factor, V x, V y) { return _mm512_fmadd_ps(_mm512_set1_ps(factor), x, y); }

inline __mmask16 lanes(int64_t count) {
  return count >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1U << count) - 1);
}

// Each takes elements `step` apart, so that a matrix is transformed along both its sides.
template <int step>
inline void input_side(V* d) {
  const V d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
  const V s = mad(-4, d2, d4), t = mad(-4, d1, d3), u = sub(d4, d2), v = times(2, sub(d3, d1));
  d[0] = mad(4, d0, mad(-5, d2, d4));
  d[step] = add(s, t);
  d[2 * step] = sub(s, t);
  d[3 * step] = add(u, v);
  d[4 * step] = sub(u, v);
  d[5 * step] = mad(4, d1, mad(-5, d3, d5));
}

template <int step>
inline void gradient_side(V* d) {
  const V y0 = d[0], y1 = d[step], y2 = d[2 * step], y3 = d[3 * step];
  const V even = add(y0, y2), odd = add(y1, y3), even2 = mad(4, y2, y0), odd2 = mad(8, y3, times(2, y1));
  d[step] = add(even, odd);
  d[2 * step] = sub(even, odd);
  d[3 * step] = add(even2, odd2);
  d[4 * step] = sub(even2, odd2);
  d[5 * step] = y3;
}

template <int step>
inline void output_side(V* m) {
  const V m0 = m[0], s1 = add(m[step], m[2 * step]), d1 = sub(m[step], m[2 * step]),
          s2 = add(m[3 * step], m[4 * step]), d2 = sub(m[3 * step], m[4 * step]), m5 = m[5 * step];
  m[0] = add(m0, add(s1, s2));
  m[step] = mad(2, d2, d1);
  m[2 * step] = mad(4, s2, s1);
  m[3 * step] = add(mad(8, d2, d1), m5);
}

template <int step>
inline void weight_side(V* g) {
  const V g0 = g[0], g1 = g[step], g2 = g[2 * step];
  const V s = times(-1.0F / 6, add(g0, g2)), t = times(-1.0F / 6, g1);
  const V u = mad(1.0F / 24, g0, times(1.0F / 6, g2)), v = times(1.0F / 12, g1);
  g[0] = times(0.25F, g0);
  g[step] = add(s, t);
  g[2 * step] = sub(s, t);
  g[3 * step] = add(u, v);
  g[4 * step] = sub(u, v);
  g[5 * step] = g2;
}

template <int step>
inline void weight_gradient_side(V* u) {
  const V u0 = u[0], s1 = add(u[step], u[2 * step]), d1 = sub(u[2 * step], u[step]),
          s2 = add(u[3 * step], u[4 * step]), d2 = sub(u[3 * step], u[4 * step]), u5 = u[5 * step];
  u[0] = mad(0.25F, u0, mad(-1.0F / 6, s1, times(1.0F / 24, s2)));
  u[step] = mad(1.0F / 6, d1, times(1.0F / 12, d2));
  u[2 * step] = add(times(1.0F / 6, sub(s2, s1)), u5);
}

/// The elements of `side`×`side` positions at (row, column), zeros outside of the picture, into d with rows
/// of 6.
template <int side>
inline void load_positions(const Picture& x, int64_t row, int64_t column, int64_t c, __mmask16 mask, V* d) {
  const bool inside = row >= 0 && column >= 0 && row + side <= x.height && column + side <= x.width;
  const float* from = x.data + (row * x.width + column) * x.channels + c;
  if (inside) {
#pragma GCC unroll 6
    for (int i = 0; i < side; ++i)
#pragma GCC unroll 6
      for (int j = 0; j < side; ++j)
        d[6 * i + j] = _mm512_maskz_loadu_ps(mask, from + (i * x.width + j) * x.channels);
    return;
  }
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      const bool there = row + i >= 0 && row + i < x.height && column + j >= 0 && column + j < x.width;
      d[6 * i + j] = _mm512_maskz_loadu_ps(there ? mask : static_cast<__mmask16>(0),
                                           from + (i * x.width + j) * x.channels);
    }
}

template <int rows, bool transposed>
inline void product(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t depth, float* c,
                    int64_t ldc) {
  V sum[rows][2];
#pragma GCC unroll 14
  for (int r = 0; r < rows; ++r) {
    sum[r][0] = transposed ? _mm512_loadu_ps(c + r * ldc) : _mm512_setzero_ps();
    sum[r][1] = transposed ? _mm512_loadu_ps(c + r * ldc + 16) : _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < depth; ++k) {
    const V b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + 16);
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r) {
      const V x = _mm512_set1_ps(transposed ? a[r] : a[r * lda]);
      sum[r][0] = _mm512_fmadd_ps(x, b0, sum[r][0]);
      sum[r][1] = _mm512_fmadd_ps(x, b1, sum[r][1]);
    }
    a += transposed ? lda : 1;
    b += ldb;
  }
#pragma GCC unroll 14
  for (int r = 0; r < rows; ++r) {
    _mm512_storeu_ps(c + r * ldc, sum[r][0]);
    _mm512_storeu_ps(c + r * ldc + 16, sum[r][1]);
  }
}

/// A product in blocks of 14 rows, which fill the registers, and a rest of 8, 4, 2 and 1.
template <bool transposed>
void product_in_blocks(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t rows, int64_t depth,
                       float* c, int64_t ldc) {
  const int64_t next = transposed ? 1 : lda;
  for (; rows >= 14; rows -= 14, a += 14 * next, c += 14 * ldc)
    product<14, transposed>(a, lda, b, ldb, depth, c, ldc);
  if (rows >= 8) {
    product<8, transposed>(a, lda, b, ldb, depth, c, ldc);
    rows -= 8, a += 8 * next, c += 8 * ldc;
  }
  if (rows >= 4) {
    product<4, transposed>(a, lda, b, ldb, depth, c, ldc);
    rows -= 4, a += 4 * next, c += 4 * ldc;
  }
  if (rows >= 2) {
    product<2, transposed>(a, lda, b, ldb, depth, c, ldc);
    rows -= 2, a += 2 * next, c += 2 * ldc;
  }
  if (rows >= 1) product<1, transposed>(a, lda, b, ldb, depth, c, ldc);
}

}  // namespace

void transform_input(const Picture& x, int64_t row, int64_t column, float* v, int64_t point_stride) {
  for (int64_t c = 0; c < x.channels; c += 16) {
    V d[36];
    load_positions<6>(x, row, column, c, lanes(x.channels - c), d);
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) input_side<6>(d + j);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      input_side<1>(d + 6 * i);
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) _mm512_storeu_ps(v + (6 * i + j) * point_stride + c, d[6 * i + j]);
    }
  }
}

void transform_gradient(const Picture& dy, int64_t row, int64_t column, float* z, int64_t point_stride) {
  for (int64_t c = 0; c < dy.channels; c += 16) {
    V d[36];
    load_positions<4>(dy, row, column, c, lanes(dy.channels - c), d);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) gradient_side<6>(d + j);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      gradient_side<1>(d + 6 * i);
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) _mm512_storeu_ps(z + (6 * i + j) * point_stride + c, d[6 * i + j]);
    }
  }
}

void transform_output(const float* m, int64_t point_stride, const Picture& y, int64_t row, int64_t column,
                      int64_t begin, int64_t count, const OutputEnd& end) {
  const int64_t rows = y.height - row < tile ? y.height - row : tile,
                columns = y.width - column < tile ? y.width - column : tile;
  for (int64_t c = 0; c < count; c += 16) {
    const __mmask16 mask = lanes(count - c);
    V d[36];
#pragma GCC unroll 36
    for (int p = 0; p < 36; ++p) d[p] = _mm512_loadu_ps(m + p * point_stride + c);
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) output_side<6>(d + j);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) output_side<1>(d + 6 * i);
    const int64_t first = (row * y.width + column) * y.channels + begin + c;
    float* to = y.data + first;
    if (end.bias) {
      const V bias = _mm512_maskz_loadu_ps(mask, end.bias + begin + c);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          V& x = d[6 * i + j];
          x = add(x, bias);
          if (end.added)
            x = add(x, _mm512_maskz_loadu_ps(mask, end.added + first + (i * y.width + j) * y.channels));
          // In this order NaN stays.
          x = _mm512_min_ps(_mm512_set1_ps(end.high), _mm512_max_ps(_mm512_set1_ps(end.low), x));
        }
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        _mm512_mask_storeu_ps(to + (i * y.width + j) * y.channels, mask, d[6 * i + j]);
  }
}

void transform_weights(const float* w, int64_t row_stride, int64_t column_stride, bool flipped, int64_t rows,
                       int64_t columns, float* u, int64_t point_stride) {
  const auto step = static_cast<int>(column_stride);
  const __m512i offsets = _mm512_mullo_epi32(
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32(step));
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t n = 0; n < panel; n += 16) {
      const __mmask16 mask = lanes(columns - n > 0 ? columns - n : 0);
      const float* from = w + k * row_stride + n * column_stride;
      V g[36];
#pragma GCC unroll 9
      for (int e = 0; e < 9; ++e)
        g[6 * (e / 3) + e % 3] =
            _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, offsets, from + (flipped ? 8 - e : e), 4);
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) weight_side<6>(g + j);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        weight_side<1>(g + 6 * i);
#pragma GCC unroll 6
        for (int j = 0; j < 6; ++j)
          _mm512_storeu_ps(u + (6 * i + j) * point_stride + k * panel + n, g[6 * i + j]);
      }
    }
}

void transform_weight_gradient(const float* d, int64_t point_stride, int64_t d_row_stride, int64_t rows,
                               int64_t columns, float* w, int64_t row_stride, int64_t column_stride) {
  const auto step = static_cast<int>(column_stride);
  const __m512i offsets = _mm512_mullo_epi32(
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32(step));
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t n = 0; n < columns; n += 16) {
      const __mmask16 mask = lanes(columns - n);
      V u[36];
#pragma GCC unroll 36
      for (int p = 0; p < 36; ++p)
        u[p] = _mm512_maskz_loadu_ps(mask, d + p * point_stride + k * d_row_stride + n);
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) weight_gradient_side<6>(u + j);
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) weight_gradient_side<1>(u + 6 * i);
      float* to = w + k * row_stride + n * column_stride;
#pragma GCC unroll 9
      for (int e = 0; e < 9; ++e) _mm512_mask_i32scatter_ps(to + e, mask, offsets, u[6 * (e / 3) + e % 3], 4);
    }
}

void multiply(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t rows, int64_t depth, float* c,
              int64_t ldc) {
  product_in_blocks<false>(a, lda, b, ldb, rows, depth, c, ldc);
}

void multiply_transposed(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t rows,
                         int64_t depth, float* c, int64_t ldc) {
  product_in_blocks<true>(a, lda, b, ldb, rows, depth, c, ldc);
}

}  // namespace millrace::cpu::winograd
