// Products of f32 on AVX2: blocks of 6×16 stay in its sixteen registers, so that a panel of 32 columns is
// gone through twice. Convolutions have no form here.
#include <cstdint>
#include <cstring>
#include <immintrin.h>

#include "backend/cpu/kernels/gemm/arithmetic.h"

namespace millrace::cpu::gemm {
namespace {

constexpr int64_t kFloat = 4, kRowsOfBlock = 6, kHalf = block_columns / 2;

/// All bits in the first `count` of eight lanes.
inline __m256i first_lanes(int64_t count) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count < 0 ? 0 : count > 8 ? 8 : count)), lane);
}

template <bool kWhole>
inline __m256 read(const float* from, __m256i mask) {
  return kWhole ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, mask);
}

template <bool kWhole>
inline void write(float* to, __m256i mask, __m256 x) {
  if constexpr (kWhole)
    _mm256_storeu_ps(to, x);
  else
    _mm256_maskstore_ps(to, mask, x);
}

/// Columns from `half` on, of which `columns` are there; `kWhole`: all sixteen.
template <int kRows, bool kWhole>
inline void store(const Block& x, int64_t half, int64_t columns, __m256 (&sum)[kRows][2]) {
  const __m256i mask[2] = {first_lanes(columns), first_lanes(columns - 8)};
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const int64_t at = half + 8 * v;
      __m256 y = sum[r][v];
      if (x.add) y = _mm256_add_ps(y, read<kWhole>(x.c + r * x.ldc + at, mask[v]));
      if (!x.finish) {
        write<kWhole>(x.c + r * x.ldc + at, mask[v], y);
        continue;
      }
      const Finish& to = *x.finish;
      const int64_t offset = r * to.step / kFloat + at;
      if (to.bias) y = _mm256_add_ps(y, read<kWhole>(to.bias + at, mask[v]));
      if (to.added) y = _mm256_add_ps(y, read<kWhole>(static_cast<const float*>(to.added) + offset, mask[v]));
      // Their second operand is what stays of a NaN.
      y = _mm256_min_ps(_mm256_set1_ps(to.high), _mm256_max_ps(_mm256_set1_ps(to.low), y));
      write<kWhole>(static_cast<float*>(to.to) + offset, mask[v], y);
    }
}

template <int kRows, bool kByRows>
void block(const Block& x, int64_t half) {
  // Two pointers and multiples of a step reach all rows without further arithmetic.
  const auto* const a = reinterpret_cast<const float*>(x.a);
  const float* third[2] = {a, a + 3 * x.step};
  const auto* b = reinterpret_cast<const float*>(x.b) + half;
  const char* ahead = static_cast<const char*>(x.ahead.from ? x.ahead.from : x.b);
  const int64_t step = x.step, ahead_step = half == 0 ? x.ahead.step : 0;
  __m256 sum[kRows][2];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_ps();
  for (int64_t segment = 0;;) {
    for (int64_t k = 0; k < x.units; ++k) {
      _mm_prefetch(ahead, _MM_HINT_T1);
      ahead += ahead_step;
      const __m256 right[2] = {_mm256_load_ps(b), _mm256_load_ps(b + 8)};
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const __m256 one =
            _mm256_broadcast_ss(kByRows ? third[r / 3] + r % 3 * step : a + k * column_step + r);
        sum[r][0] = _mm256_fmadd_ps(one, right[0], sum[r][0]);
        sum[r][1] = _mm256_fmadd_ps(one, right[1], sum[r][1]);
      }
      ++third[0];
      ++third[1];
      b += block_columns;
    }
    if (!kByRows || ++segment == x.segments) break;
    third[0] += x.segment_step - x.units;
    third[1] += x.segment_step - x.units;
  }
  if (const int64_t columns = x.columns - half; columns >= kHalf)
    store<kRows, true>(x, half, columns, sum);
  else
    store<kRows, false>(x, half, columns, sum);
}

template <bool kByRows>
void multiply_half(const Block& x, int64_t half) {
  switch (x.rows) {
#define ROWS(n) \
  case n:       \
    return block<n, kByRows>(x, half);
    ROWS(1)
    ROWS(2)
    ROWS(3) ROWS(4) ROWS(5) ROWS(6)
#undef ROWS
  }
}

void multiply(const Block& x) {
  for (int64_t half = 0; half < x.columns; half += kHalf)
    x.by_rows ? multiply_half<true>(x, half) : multiply_half<false>(x, half);
}

void copy_rows(const char* const* from, int64_t offset, int64_t rows, int64_t count, Unit* to) {
  for (int64_t r = 0; r < rows; ++r, to += row_step)
    std::memcpy(to, from[r] + offset, static_cast<size_t>(count * kFloat));
}

void pack_rows(const char* const* from, int64_t offset, int64_t count, int64_t width, Unit* to,
               int64_t step) {
  for (int64_t k = 0; k < count; ++k, to += step) {
    std::memcpy(to, from[k] + offset, static_cast<size_t>(width * kFloat));
    std::memset(to + width, 0, static_cast<size_t>((step - width) * kFloat));
  }
}

void pack_left(const char* const* from, int64_t offset, int64_t count, int64_t rows, Unit* to) {
  pack_rows(from, offset, count, rows, to, column_step);
}

/// Rows and columns of an 8×8 block change places.
inline void transpose(__m256 (&x)[8]) {
  __m256 y[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    y[2 * i] = _mm256_unpacklo_ps(x[2 * i], x[2 * i + 1]);
    y[2 * i + 1] = _mm256_unpackhi_ps(x[2 * i], x[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    x[4 * i] = _mm256_shuffle_ps(y[4 * i], y[4 * i + 2], 0x44);
    x[4 * i + 1] = _mm256_shuffle_ps(y[4 * i], y[4 * i + 2], 0xEE);
    x[4 * i + 2] = _mm256_shuffle_ps(y[4 * i + 1], y[4 * i + 3], 0x44);
    x[4 * i + 3] = _mm256_shuffle_ps(y[4 * i + 1], y[4 * i + 3], 0xEE);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    y[i] = _mm256_permute2f128_ps(x[i], x[4 + i], 0x20);
    y[4 + i] = _mm256_permute2f128_ps(x[i], x[4 + i], 0x31);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) x[i] = y[i];
}

void pack_columns(const void* from, int64_t stride, int64_t columns, int64_t count, Unit* to) {
  const auto* const elements = static_cast<const float*>(from);
  auto* const packed = reinterpret_cast<float*>(to);
  for (int64_t n = 0; n < block_columns; n += 8)
    for (int64_t k = 0; k < count; k += 8) {
      const __m256i mask = first_lanes(count - k);
      __m256 x[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i)
        x[i] =
            n + i < columns ? _mm256_maskload_ps(elements + (n + i) * stride + k, mask) : _mm256_setzero_ps();
      transpose(x);
      const int64_t units = count - k < 8 ? count - k : 8;
      for (int64_t i = 0; i < units; ++i) _mm256_store_ps(packed + (k + i) * block_columns + n, x[i]);
    }
}

}  // namespace

const Arithmetic& arithmetic_f32_avx2() {
  static constexpr Arithmetic f32{.unit = 1,
                                  .bytes = kFloat,
                                  .block_rows = kRowsOfBlock,
                                  .left_block = left_block,
                                  .left_by_rows = false,
                                  .rate = 40,
                                  .multiply = multiply,
                                  .pack_left = pack_left,
                                  .copy_rows = copy_rows,
                                  .pack_rows = pack_rows,
                                  .pack_columns = pack_columns,
                                  .interleave = nullptr,
                                  .round = nullptr,
                                  .shuffle = nullptr};
  return f32;
}

}  // namespace millrace::cpu::gemm
