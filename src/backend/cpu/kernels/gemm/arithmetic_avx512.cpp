#include <cstdint>
#include <immintrin.h>

namespace millrace::cpu::gemm {
namespace {

using Element = float;
constexpr int64_t kUnit = 1, kBytes = 4;

inline __mmask16 lanes(int64_t count) {
  return count >= 16 ? __mmask16(0xFFFF) : count <= 0 ? __mmask16(0) : __mmask16((1U << count) - 1);
}

inline __m512 multiply_add(__m512 sum, __m512i a, __m512i b) {
  return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
}

inline __m512i rows_of(const char* const* from, int64_t offset, int64_t k, int64_t /*count*/,
                       __mmask16 mask) {
  return _mm512_maskz_loadu_epi32(mask, from[k] + offset);
}

inline void pack_wide(const char* const* from, int64_t offset, int64_t k, int64_t count, int64_t width,
                      void* to) {
  _mm512_store_si512(to, rows_of(from, offset, k, count, lanes(width)));
  _mm512_store_si512(static_cast<float*>(to) + 16,
                     rows_of(from, offset + 16 * kBytes, k, count, lanes(width - 16)));
}

inline __m512i units_of(const float* from, int64_t count) {
  if (count >= 16) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi32(__mmask16((1U << count) - 1), from);
}

inline __m512 read(const char* from, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, from); }

inline void write(char* to, __mmask16 mask, __m512 x) { _mm512_mask_storeu_ps(to, mask, x); }

inline void write_both(char* to, __m512 x, __m512 y) {
  _mm512_storeu_ps(to, x);
  _mm512_storeu_ps(to + 64, y);
}

}  // namespace
}  // namespace millrace::cpu::gemm

#include "backend/cpu/kernels/gemm/arithmetic.inc"

namespace millrace::cpu::gemm {
namespace {

/// Lane j of the v-th of kChannels vectors is a pixel's channel (16·v + j) mod kChannels.
template <int kChannels>
void interleave_some(const char* const* from, int64_t count, Unit* to) {
  alignas(64) int32_t pixel[kChannels][16];
  __mmask16 of[kChannels][kChannels] = {};
  for (int v = 0; v < kChannels; ++v)
    for (int j = 0; j < 16; ++j) {
      pixel[v][j] = (16 * v + j) / kChannels;
      of[v][(16 * v + j) % kChannels] |= static_cast<__mmask16>(1U << j);
    }
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = lanes(count - i);
    __m512 rows[kChannels];
    for (int c = 0; c < kChannels; ++c) rows[c] = _mm512_maskz_loadu_ps(mask, from[c] + i * kBytes);
    for (int v = 0; v < kChannels; ++v) {
      const __m512i index = _mm512_load_si512(pixel[v]);
      __m512 mixed = _mm512_setzero_ps();
      for (int c = 0; c < kChannels; ++c) mixed = _mm512_mask_permutexvar_ps(mixed, of[v][c], index, rows[c]);
      _mm512_storeu_ps(to + kChannels * i + 16 * v, mixed);
    }
  }
}

void interleave(const char* const* from, int64_t channels, int64_t count, Unit* to) {
  constexpr void (*kinds[])(const char* const*, int64_t, Unit*) = {interleave_some<1>, interleave_some<2>,
                                                                   interleave_some<3>, interleave_some<4>};
  kinds[channels - 1](from, count, to);
}

void shuffle(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t vectors,
             const uint16_t* index, const uint32_t* mask) {
  for (int64_t v = 0; v < vectors; ++v) {
    const __m512i lane =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(index + v * 16)));
    __m512i result = _mm512_setzero_si512();
    for (int64_t s = 0; s < vectors; ++s)
      result =
          _mm512_mask_permutexvar_epi32(result, static_cast<__mmask16>(mask[v * vectors + s]), lane,
                                        _mm512_loadu_si512(static_cast<const float*>(from) + s * from_step));
    _mm512_storeu_si512(static_cast<float*>(to) + v * to_step, result);
  }
}

}  // namespace

const Arithmetic& arithmetic_f32() {
  static constexpr Arithmetic f32 = of_elements(80, interleave, shuffle);
  return f32;
}

}  // namespace millrace::cpu::gemm
