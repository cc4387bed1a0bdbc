// Compiled for AVX-512 whatever the rest of the program is compiled for, so nothing but intrinsics may be
// included.
#include <immintrin.h>

#include "backend/cpu/kernels/winograd/arithmetic_bf16.h"

namespace millrace::cpu::winograd::narrow {
namespace {

using V = __m512;

inline V add(V x, V y) { return _mm512_add_ps(x, y); }
inline V sub(V x, V y) { return _mm512_sub_ps(x, y); }

inline __mmask16 lanes(int64_t count) {
  return count >= 16  ? static_cast<__mmask16>(0xffff)
         : count <= 0 ? static_cast<__mmask16>(0)
                      : static_cast<__mmask16>((1U << count) - 1);
}

inline V load(const uint16_t* from, __mmask16 mask) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

inline __m256i round(V x) { return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)); }

// Each takes elements `step` apart, so that a matrix is transformed along both its sides.
template <int step>
inline void input_side(V* d) {
  const V d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
  d[0] = sub(d0, d2);
  d[step] = add(d1, d2);
  d[2 * step] = sub(d2, d1);
  d[3 * step] = sub(d1, d3);
}

template <int step>
inline void gradient_side(V* d) {
  const V y0 = d[0], y1 = d[step];
  d[step] = add(y0, y1);
  d[2 * step] = sub(y0, y1);
  d[3 * step] = sub(_mm512_setzero_ps(), y1);
}

template <int step>
inline void output_side(V* m) {
  const V m0 = m[0], m1 = m[step], m2 = m[2 * step], m3 = m[3 * step];
  m[0] = add(m0, add(m1, m2));
  m[step] = sub(sub(m1, m2), m3);
}

template <int step>
inline void weight_side(V* g) {
  const V half = _mm512_set1_ps(0.5F), g0 = g[0], g1 = g[step], g2 = g[2 * step];
  const V s = _mm512_mul_ps(half, add(g0, g2)), t = _mm512_mul_ps(half, g1);
  g[step] = add(s, t);
  g[2 * step] = sub(s, t);
  g[3 * step] = g2;
}

template <int step>
inline void weight_gradient_side(V* u) {
  const V half = _mm512_set1_ps(0.5F), u0 = u[0], u3 = u[3 * step];
  const V s = _mm512_mul_ps(half, add(u[step], u[2 * step])),
          d = _mm512_mul_ps(half, sub(u[step], u[2 * step]));
  u[0] = add(u0, s);
  u[step] = d;
  u[2 * step] = add(s, u3);
}

/// The elements of `side`×`side` positions at (row, column), zeros outside of the picture, into d with rows
/// of 4.
template <int side>
inline void load_positions(const Picture& x, int64_t row, int64_t column, int64_t c, __mmask16 mask, V* d) {
  const bool inside = row >= 0 && column >= 0 && row + side <= x.height && column + side <= x.width;
  const uint16_t* from = x.data + (row * x.width + column) * x.channels + c;
  if (inside) {
#pragma GCC unroll 4
    for (int i = 0; i < side; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < side; ++j) d[4 * i + j] = load(from + (i * x.width + j) * x.channels, mask);
    return;
  }
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      const bool there = row + i >= 0 && row + i < x.height && column + j >= 0 && column + j < x.width;
      d[4 * i + j] = there ? load(from + (i * x.width + j) * x.channels, mask) : _mm512_setzero_ps();
    }
}

inline void input_points(const Picture& x, int64_t row, int64_t column, int64_t c, V* d) {
  load_positions<4>(x, row, column, c, lanes(x.channels - c), d);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) input_side<4>(d + j);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) input_side<1>(d + 4 * i);
}

inline void gradient_points(const Picture& dy, int64_t row, int64_t column, int64_t c, V* d) {
  load_positions<2>(dy, row, column, c, lanes(dy.channels - c), d);
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) gradient_side<4>(d + j);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) gradient_side<1>(d + 4 * i);
}

template <void (*points_of)(const Picture&, int64_t, int64_t, int64_t, V*)>
inline void transform_pair(const Spot& first, const Spot& second, bool two, uint32_t* to,
                           int64_t point_stride, int64_t odd_offset, int64_t pair_stride) {
  for (int64_t c = 0; c < first.picture.channels;
       c += 16, to += c % 32 == 0 ? pair_stride - odd_offset : odd_offset) {
    V d[points];
    __m256i rounded[points];
    points_of(first.picture, first.row, first.column, c, d);
#pragma GCC unroll 16
    for (int p = 0; p < points; ++p) rounded[p] = round(d[p]);
    if (two) points_of(second.picture, second.row, second.column, c, d);
#pragma GCC unroll 16
    for (int p = 0; p < points; ++p) {
      __m512i units = _mm512_cvtepu16_epi32(rounded[p]);
      if (two) units = _mm512_or_si512(units, _mm512_slli_epi32(_mm512_cvtepu16_epi32(round(d[p])), 16));
      _mm512_storeu_si512(to + p * point_stride, units);
    }
  }
}

}  // namespace

void transform_input(const Picture& x, int64_t row, int64_t column, uint16_t* v, int64_t point_stride) {
  for (int64_t c = 0; c < x.channels; c += 16) {
    V d[points];
    input_points(x, row, column, c, d);
#pragma GCC unroll 16
    for (int p = 0; p < points; ++p)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(v + p * point_stride + c), round(d[p]));
  }
}

void transform_input_pair(const Spot& first, const Spot& second, bool two, uint32_t* v, int64_t point_stride,
                          int64_t odd_offset, int64_t pair_stride) {
  transform_pair<input_points>(first, second, two, v, point_stride, odd_offset, pair_stride);
}

void transform_gradient_pair(const Spot& first, const Spot& second, bool two, uint32_t* z,
                             int64_t point_stride, int64_t odd_offset, int64_t pair_stride) {
  transform_pair<gradient_points>(first, second, two, z, point_stride, odd_offset, pair_stride);
}

void transform_output(const float* m, int64_t point_stride, const Picture& y, int64_t row, int64_t column,
                      int64_t begin, int64_t count, const OutputEnd& end) {
  const int64_t rows = y.height - row < tile ? y.height - row : tile,
                columns = y.width - column < tile ? y.width - column : tile;
  for (int64_t c = 0; c < count; c += 16) {
    const __mmask16 mask = lanes(count - c);
    V d[points];
#pragma GCC unroll 16
    for (int p = 0; p < points; ++p) d[p] = _mm512_loadu_ps(m + p * point_stride + c);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) output_side<4>(d + j);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) output_side<1>(d + 4 * i);
    const int64_t first = (row * y.width + column) * y.channels + begin + c;
    uint16_t* to = y.data + first;
    if (end.bias) {
      const V bias = _mm512_maskz_loadu_ps(mask, end.bias + begin + c);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          V& x = d[4 * i + j];
          x = _mm512_add_ps(x, bias);
          if (end.added) x = _mm512_add_ps(x, load(end.added + first + (i * y.width + j) * y.channels, mask));
          // In this order NaN stays.
          x = _mm512_min_ps(_mm512_set1_ps(end.high), _mm512_max_ps(_mm512_set1_ps(end.low), x));
        }
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        _mm256_mask_storeu_epi16(to + (i * y.width + j) * y.channels, mask, round(d[4 * i + j]));
  }
}

void transform_weights(const uint16_t* g, int64_t tap_stride, bool flipped, int64_t channels, uint16_t* u,
                       int64_t point_stride) {
  for (int64_t c = 0; c < channels; c += 16) {
    const __mmask16 mask = lanes(channels - c);
    V d[points];
#pragma GCC unroll 9
    for (int e = 0; e < 9; ++e)
      d[4 * (e / 3) + e % 3] = load(g + (flipped ? 8 - e : e) * tap_stride + c, mask);
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) weight_side<4>(d + j);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) weight_side<1>(d + 4 * i);
#pragma GCC unroll 16
    for (int p = 0; p < points; ++p) _mm256_mask_storeu_epi16(u + p * point_stride + c, mask, round(d[p]));
  }
}

void transform_weight_gradient(const float* sums, int64_t point_stride, int64_t channels, uint16_t* w,
                               int64_t tap_stride) {
  for (int64_t c = 0; c < channels; c += 16) {
    const __mmask16 mask = lanes(channels - c);
    V d[points];
#pragma GCC unroll 16
    for (int p = 0; p < points; ++p) d[p] = _mm512_maskz_loadu_ps(mask, sums + p * point_stride + c);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) weight_gradient_side<4>(d + j);
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) weight_gradient_side<1>(d + 4 * i);
#pragma GCC unroll 9
    for (int e = 0; e < 9; ++e)
      _mm256_mask_storeu_epi16(w + e * tap_stride + c, mask, round(d[4 * (e / 3) + e % 3]));
  }
}

}  // namespace millrace::cpu::winograd::narrow
