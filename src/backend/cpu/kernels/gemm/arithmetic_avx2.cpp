// Products of f32 on AVX2: blocks of 6×16 stay in its sixteen registers. A panel has 16 columns, so that it
// fills every set of the first-level cache alike and stays there while rows go by. Left sides are packed by
// columns: numbers of six rows at the same place of their cache lines could not be read in one cycle. Rows of
// a picture of few channels begin a few numbers apart and are read as they lie.
#include <cstdint>
#include <cstring>
#include <immintrin.h>

#include "backend/cpu/kernels/gemm/arithmetic.h"
#include "backend/cpu/kernels/vectors_avx2.inc"

namespace millrace::cpu::gemm {
namespace {

constexpr int64_t kFloat = 4, kRowsOfBlock = 6, kPanel = 16;
constexpr int64_t kStep = kRowsOfBlock;  // between units of a left side

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

/// Calls `change(row, vector, sum)` for all. Always inlined: sums whose address is taken would be stored in
/// each step of the loop that makes them.
template <int kRows, typename Change>
[[gnu::always_inline]] inline void for_each(__m256 (&sum)[kRows][2], Change change) {
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    sum[r][0] = change(r, 0, sum[r][0]);
    sum[r][1] = change(r, 1, sum[r][1]);
  }
}

/// `kWhole`: all sixteen columns are there.
template <int kRows, bool kWhole>
[[gnu::always_inline]] inline void store(const Block& x, __m256 (&sum)[kRows][2]) {
  const __m256i mask[2] = {first_lanes(x.columns), first_lanes(x.columns - 8)};
  if (x.add)
    for_each(
        sum, [&](int r, int v, __m256 y) __attribute__((always_inline)) {
          return _mm256_add_ps(y, read<kWhole>(x.c + r * x.ldc + 8 * v, mask[v]));
        });
  float* to = x.c;
  int64_t step = x.ldc;
  if (x.finish) {
    const Finish& end = *x.finish;
    to = static_cast<float*>(end.to);
    step = end.step / kFloat;
    if (end.bias)
      for_each(
          sum, [&](int /*r*/, int v, __m256 y) __attribute__((always_inline)) {
            return _mm256_add_ps(y, read<kWhole>(end.bias + 8 * v, mask[v]));
          });
    if (end.added)
      for_each(
          sum, [&](int r, int v, __m256 y) __attribute__((always_inline)) {
            return _mm256_add_ps(
                y, read<kWhole>(static_cast<const float*>(end.added) + r * step + 8 * v, mask[v]));
          });
    const __m256 low = _mm256_set1_ps(end.low), high = _mm256_set1_ps(end.high);
    // Their second operand is what stays of a NaN.
    for_each(
        sum, [&](int /*r*/, int /*v*/, __m256 y)
                 __attribute__((always_inline)) { return _mm256_min_ps(high, _mm256_max_ps(low, y)); });
  }
  for_each(
      sum, [&](int r, int v, __m256 y) __attribute__((always_inline)) {
        write<kWhole>(to + r * step + 8 * v, mask[v], y);
        return y;
      });
}

/// [6 rows] · [16 columns] over four units, or one: a thread that shares its core with another begins three
/// instructions a cycle then, so that what only counts has to be rare. By rows, two pointers and multiples of
/// `row`, the bytes from one to the next, reach all six without further arithmetic.
template <int kRows, int kUnits, bool kByRows>
[[gnu::always_inline]] inline void add_units(const char* const (&third)[2], int64_t row, const float* b,
                                             __m256 (&sum)[kRows][2]) {
#pragma GCC unroll 4
  for (int k = 0; k < kUnits; ++k) {
    const __m256 right[2] = {_mm256_load_ps(b + kPanel * k), _mm256_load_ps(b + kPanel * k + 8)};
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const char* const at =
          kByRows ? third[r / 3] + r % 3 * row + kFloat * k : third[0] + kFloat * (kStep * k + r);
      const __m256 one = _mm256_broadcast_ss(reinterpret_cast<const float*>(at));
      accumulate(sum[r][0], one, right[0]);
      accumulate(sum[r][1], one, right[1]);
    }
  }
}

template <int kRows, bool kByRows>
void block(const Block& x) {
  const auto* b = reinterpret_cast<const float*>(x.b);
  const int64_t row = kFloat * x.step, unit = kFloat * (kByRows ? 1 : kStep);
  const char* third[2] = {reinterpret_cast<const char*>(x.a), reinterpret_cast<const char*>(x.a) + 3 * row};
  const char* ahead = static_cast<const char*>(x.ahead.from ? x.ahead.from : x.b);
  const int64_t ahead_step = x.ahead.step;
  __m256 sum[kRows][2];
  // What the sums are added to and where they go to is wanted at the end at once.
  const auto* const to = x.finish ? static_cast<const char*>(x.finish->to) : nullptr;
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    sum[r][0] = sum[r][1] = _mm256_setzero_ps();
    if (x.add) _mm_prefetch(x.c + r * x.ldc, _MM_HINT_T0);
    if (to) _mm_prefetch(to + r * x.finish->step, _MM_HINT_T0);
  }
  const auto move = [&](int64_t bytes) {
    third[0] += bytes;
    third[1] += bytes;
  };
  for (int64_t segment = 0;;) {
    int64_t k = x.units;
    for (; !kByRows && k >= 4; k -= 4, b += 4 * kPanel, ahead += 4 * ahead_step) {
      _mm_prefetch(ahead, _MM_HINT_T1);
      if (ahead_step > 16)  // else the four fall into one line
#pragma GCC unroll 3
        for (int i = 1; i < 4; ++i) _mm_prefetch(ahead + i * ahead_step, _MM_HINT_T1);
      add_units<kRows, 4, kByRows>(third, row, b, sum);
      move(4 * unit);
    }
    // By rows one by one: displacements beside two registers would cost GCC a register each.
    for (; k > 0; --k, b += kPanel, ahead += ahead_step) {
      _mm_prefetch(ahead, _MM_HINT_T1);
      add_units<kRows, 1, kByRows>(third, row, b, sum);
      move(unit);
    }
    if (!kByRows || ++segment == x.segments) break;
    move(kFloat * (x.segment_step - x.units));
  }
  x.columns >= kPanel ? store<kRows, true>(x, sum) : store<kRows, false>(x, sum);
}

void multiply(const Block& x) {
  switch (x.rows) {
#define ROWS(n) \
  case n:       \
    return x.by_rows ? block<n, true>(x) : block<n, false>(x);
    ROWS(1)
    ROWS(2)
    ROWS(3) ROWS(4) ROWS(5) ROWS(6)
#undef ROWS
  }
}

// Rows lie far apart, where no prefetcher of the CPU looks.
constexpr int64_t rows_ahead = 32;

void pack_rows(const char* const* from, int64_t offset, int64_t count, int64_t width, Unit* to,
               int64_t /*step: that of a panel*/) {
  auto* packed = reinterpret_cast<float*>(to);
  const __m256i mask[2] = {first_lanes(width), first_lanes(width - 8)};
  for (int64_t k = 0; k < count; ++k, packed += kPanel) {
    if (k + rows_ahead < count) _mm_prefetch(from[k + rows_ahead] + offset, _MM_HINT_T0);
    const auto* const row = reinterpret_cast<const float*>(from[k] + offset);
    if (width == kPanel) {
      _mm256_store_ps(packed, _mm256_loadu_ps(row));
      _mm256_store_ps(packed + 8, _mm256_loadu_ps(row + 8));
    } else {
      _mm256_store_ps(packed, _mm256_maskload_ps(row, mask[0]));
      _mm256_store_ps(packed + 8, _mm256_maskload_ps(row + 8, mask[1]));
    }
  }
}

// What is stored behind six columns comes again with the next, or falls behind the block.
void pack_left(const char* const* from, int64_t offset, int64_t count, int64_t rows, Unit* to) {
  auto* packed = reinterpret_cast<float*>(to);
  const __m256i mask = first_lanes(rows);
  for (int64_t k = 0; k < count; ++k, packed += kStep) {
    if (k + rows_ahead < count) _mm_prefetch(from[k + rows_ahead] + offset, _MM_HINT_T0);
    _mm256_storeu_ps(packed, _mm256_maskload_ps(reinterpret_cast<const float*>(from[k] + offset), mask));
  }
}

/// With the number of rows known all stays in registers.
template <int kRows>
void pack_left_rows_of(const char* const* from, int64_t offset, int64_t count, float* packed) {
  const float* row[kRows];
  for (int r = 0; r < kRows; ++r) row[r] = reinterpret_cast<const float*>(from[r] + offset);
  __m256 x[8];
  int64_t k = 0;
  for (; k + 8 <= count; k += 8, packed += 8 * kStep) {
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) x[r] = r < kRows ? _mm256_loadu_ps(row[r] + k) : _mm256_setzero_ps();
    transpose(x);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) _mm256_storeu_ps(packed + i * kStep, x[i]);
  }
  for (; k < count; ++k, packed += kStep)
    for (int r = 0; r < kRows; ++r) packed[r] = row[r][k];
}

void pack_left_rows(const char* const* from, int64_t offset, int64_t rows, int64_t count, Unit* to) {
  constexpr void (*kinds[])(const char* const*, int64_t, int64_t, float*) = {
      pack_left_rows_of<1>, pack_left_rows_of<2>, pack_left_rows_of<3>,
      pack_left_rows_of<4>, pack_left_rows_of<5>, pack_left_rows_of<6>};
  kinds[rows - 1](from, offset, count, reinterpret_cast<float*>(to));
}

void pack_columns(const void* from, int64_t stride, int64_t columns, int64_t count, Unit* to) {
  const auto* const elements = static_cast<const float*>(from);
  auto* const packed = reinterpret_cast<float*>(to);
  for (int64_t n = 0; n < kPanel; n += 8)
    for (int64_t k = 0; k < count; k += 8) {
      const __m256i mask = first_lanes(count - k);
      __m256 x[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i)
        x[i] =
            n + i < columns ? _mm256_maskload_ps(elements + (n + i) * stride + k, mask) : _mm256_setzero_ps();
      transpose(x);
      const int64_t units = count - k < 8 ? count - k : 8;
      for (int64_t i = 0; i < units; ++i) _mm256_store_ps(packed + (k + i) * kPanel + n, x[i]);
    }
}

template <int kChannels>
void interleave_some(const char* const* from, int64_t count, Unit* to) {
  auto* const pixels = reinterpret_cast<float*>(to);
  for (int64_t i = 0; i < count; ++i)
    for (int c = 0; c < kChannels; ++c)
      pixels[i * kChannels + c] = reinterpret_cast<const float*>(from[c])[i];
}

void interleave(const char* const* from, int64_t channels, int64_t count, Unit* to) {
  constexpr void (*kinds[])(const char* const*, int64_t, Unit*) = {interleave_some<1>, interleave_some<2>,
                                                                   interleave_some<3>, interleave_some<4>};
  kinds[channels - 1](from, count, to);
}

void copy(const float* from, void* to, int64_t count) {
  std::memcpy(to, from, static_cast<size_t>(count * kFloat));
}

}  // namespace

const Arithmetic& arithmetic_f32_avx2() {
  static constexpr Arithmetic f32{.unit = 1,
                                  .bytes = kFloat,
                                  .block_rows = kRowsOfBlock,
                                  .panel = kPanel,
                                  .left_block = depth * kStep + 16,
                                  .left_side = LeftSide::columns,
                                  .left_step = kStep,
                                  .rate = 40,
                                  .multiply = multiply,
                                  .pack_left = pack_left,
                                  .pack_left_rows = pack_left_rows,
                                  .pack_rows = pack_rows,
                                  .pack_columns = pack_columns,
                                  .interleave = interleave,
                                  .round = copy,
                                  .shuffle = nullptr};
  return f32;
}

}  // namespace millrace::cpu::gemm
