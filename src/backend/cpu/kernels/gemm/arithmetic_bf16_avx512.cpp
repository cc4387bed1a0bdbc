#include <cstdint>
#include <immintrin.h>

namespace millrace::cpu::gemm {
namespace {

using Element = uint16_t;
constexpr int64_t kUnit = 2, kBytes = 2;

inline __mmask16 lanes(int64_t count) {
  return count >= 16 ? __mmask16(0xFFFF) : count <= 0 ? __mmask16(0) : __mmask16((1U << count) - 1);
}

inline __m512 multiply_add(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

/// Two rows, element by element side by side.
inline __m512i rows_of(const char* const* from, int64_t offset, int64_t k, int64_t count, __mmask16 mask) {
  const __m512i first = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from[k] + offset));
  if (k + 1 >= count) return first;
  const __m512i second = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from[k + 1] + offset));
  return _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
}

/// Lane i of a result is lane i/2 of the one row (even i) or the other, counted from `first`.
inline __m512i pairs_from(int first) {
  alignas(64) uint16_t index[32];
#pragma GCC unroll 32
  for (int i = 0; i < 32; ++i) index[i] = static_cast<uint16_t>(first + i / 2 + i % 2 * 32);
  return _mm512_load_si512(index);
}

inline void pack_wide(const char* const* from, int64_t offset, int64_t k, int64_t count, int64_t width,
                      void* to) {
  const __mmask32 mask = width >= 32 ? ~__mmask32(0) : (__mmask32(1) << width) - 1;
  const __m512i first = _mm512_maskz_loadu_epi16(mask, from[k] + offset),
                second = k + 1 < count ? _mm512_maskz_loadu_epi16(mask, from[k + 1] + offset)
                                       : _mm512_setzero_si512();
  _mm512_store_si512(to, _mm512_permutex2var_epi16(first, pairs_from(0), second));
  _mm512_store_si512(static_cast<uint16_t*>(to) + 32,
                     _mm512_permutex2var_epi16(first, pairs_from(16), second));
}

inline __m512i units_of(const uint16_t* from, int64_t count) {
  if (count >= 32) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi16(__mmask32((1U << count) - 1), from);
}

inline __m512 read(const char* from, __mmask16 mask) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16));
}

inline void write(char* to, __mmask16 mask, __m512 x) {
  _mm256_mask_storeu_epi16(to, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
}

inline void write_both(char* to, __m512 x, __m512 y) {
  _mm512_storeu_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(y, x)));
}

}  // namespace
}  // namespace millrace::cpu::gemm

#include "backend/cpu/kernels/gemm/arithmetic.inc"

namespace millrace::cpu::gemm {
namespace {

/// Units of the first two channels and of the others, in turns.
void interleave(const char* const* from, int64_t channels, int64_t count, Unit* to) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = lanes(count - i);
    const __m512i first = rows_of(from, i * kBytes, 0, channels, mask);
    if (channels <= 2) {
      _mm512_storeu_si512(to + i, first);
      continue;
    }
    const __m512i second = rows_of(from, i * kBytes, 2, channels, mask);
    _mm512_storeu_si512(to + 2 * i, _mm512_permutex2var_epi32(first, low, second));
    _mm512_storeu_si512(to + 2 * i + 16, _mm512_permutex2var_epi32(first, high, second));
  }
}

void round(const float* from, void* to, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = lanes(count - i);
    write(static_cast<char*>(to) + i * kBytes, mask, _mm512_maskz_loadu_ps(mask, from + i));
  }
}

void shuffle(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t vectors,
             const uint16_t* index, const uint32_t* mask) {
  for (int64_t v = 0; v < vectors; ++v) {
    const __m512i lane = _mm512_loadu_si512(index + v * 32);
    __m512i result = _mm512_setzero_si512();
    for (int64_t s = 0; s < vectors; ++s)
      result = _mm512_mask_permutexvar_epi16(
          result, mask[v * vectors + s], lane,
          _mm512_loadu_si512(static_cast<const uint16_t*>(from) + s * from_step));
    _mm512_storeu_si512(static_cast<uint16_t*>(to) + v * to_step, result);
  }
}

}  // namespace

const Arithmetic& arithmetic_bf16() {
  static constexpr Arithmetic bf16{kUnit,        kBytes,     multiply, copy_rows, pack_rows,
                                   pack_columns, interleave, round,    shuffle};
  return bf16;
}

}  // namespace millrace::cpu::gemm
