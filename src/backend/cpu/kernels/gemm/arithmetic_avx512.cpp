#include <cstdint>
#include <immintrin.h>

namespace millrace::cpu::gemm {
namespace {

using Element = float;
constexpr int64_t kUnit = 1, kBytes = 4;

inline __m512 multiply_add(__m512 sum, __m512i a, __m512i b) {
  return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
}

inline __m512i rows_of(const char* const* from, int64_t offset, int64_t k, int64_t /*count*/,
                       __mmask16 mask) {
  return _mm512_maskz_loadu_epi32(mask, from[k] + offset);
}

inline __m512i units_of(const float* from, int64_t count) {
  if (count >= 16) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi32(__mmask16((1U << count) - 1), from);
}

}  // namespace
}  // namespace millrace::cpu::gemm

#include "backend/cpu/kernels/gemm/arithmetic.inc"

namespace millrace::cpu::gemm {
namespace {

void copy(const float* from, void* to, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = lanes(count - i);
    _mm512_mask_storeu_ps(static_cast<float*>(to) + i, mask, _mm512_maskz_loadu_ps(mask, from + i));
  }
}

}  // namespace

const Arithmetic& arithmetic_f32() {
  static constexpr Arithmetic f32{kUnit, kBytes, multiply, pack_rows, pack_columns, copy};
  return f32;
}

}  // namespace millrace::cpu::gemm
