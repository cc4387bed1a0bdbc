#include <cstdint>
#include <immintrin.h>

namespace millrace::cpu::gemm {
namespace {

using Element = uint16_t;
constexpr int64_t kUnit = 2, kBytes = 2;

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

inline __m512i units_of(const uint16_t* from, int64_t count) {
  if (count >= 32) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi16(__mmask32((1U << count) - 1), from);
}

}  // namespace
}  // namespace millrace::cpu::gemm

#include "backend/cpu/kernels/gemm/arithmetic.inc"

namespace millrace::cpu::gemm {
namespace {

void round(const float* from, void* to, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = lanes(count - i);
    const __m256bh half = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + i));
    _mm256_mask_storeu_epi16(static_cast<uint16_t*>(to) + i, mask, reinterpret_cast<__m256i>(half));
  }
}

}  // namespace

const Arithmetic& arithmetic_bf16() {
  static constexpr Arithmetic bf16{kUnit, kBytes, multiply, pack_rows, pack_columns, round};
  return bf16;
}

}  // namespace millrace::cpu::gemm
