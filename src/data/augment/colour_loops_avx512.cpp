#include <cstdint>
#include <immintrin.h>
#include <type_traits>

#include "data/augment/colour_loops.h"

namespace millrace::data {
namespace {

constexpr int lanes = 16;
using I = int32_t __attribute__((vector_size(64)));
using F = float __attribute__((vector_size(64)));

inline I load(const uint8_t* at) {
  return reinterpret_cast<I>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
}
inline void store(uint8_t* at, I value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(value)));
}
inline F floats(I value) { return _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(value)); }
inline I whole(F value) { return reinterpret_cast<I>(_mm512_cvttps_epi32(value)); }
inline F fused(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
inline F least(F a, F b) { return _mm512_min_ps(a, b); }
inline F most(F a, F b) { return _mm512_max_ps(a, b); }
inline I least(I a, I b) {
  return reinterpret_cast<I>(_mm512_min_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
inline I most(I a, I b) {
  return reinterpret_cast<I>(_mm512_max_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}

#include "data/augment/colour_lanes.inc"

/// 128 entries at a time, where the CPU can.
__attribute__((target("avx512vbmi"))) void look_up_128(const uint8_t* table, const uint8_t* in, int64_t count,
                                                       uint8_t* out) {
  const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64),
                c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
  for (int64_t i = 0; i < count; i += 64) {
    const __mmask64 there = count - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (count - i)) - 1;
    const __m512i at = _mm512_maskz_loadu_epi8(there, in + i);
    const __m512i low = _mm512_permutex2var_epi8(a, at, b), high = _mm512_permutex2var_epi8(c, at, d);
    _mm512_mask_storeu_epi8(out + i, there, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
  }
}

void look_up_16(const uint8_t* table, const uint8_t* in, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; i += 64) {
    const __mmask64 there = count - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (count - i)) - 1;
    const __m512i at = _mm512_maskz_loadu_epi8(there, in + i);
    const __m512i row = _mm512_and_si512(_mm512_srli_epi16(at, 4), _mm512_set1_epi8(15)),
                  place = _mm512_and_si512(at, _mm512_set1_epi8(15));
    __m512i found = _mm512_setzero_si512();
    for (int k = 0; k < 16; ++k) {
      const __m512i entries =
          _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k)));
      const __mmask64 here = _mm512_cmpeq_epi8_mask(row, _mm512_set1_epi8(static_cast<char>(k)));
      found = _mm512_mask_shuffle_epi8(found, here, entries, place);
    }
    _mm512_mask_storeu_epi8(out + i, there, found);
  }
}

void look_up(const uint8_t* table, const uint8_t* in, int64_t count, uint8_t* out) {
  static const bool wide = __builtin_cpu_supports("avx512vbmi");
  (wide ? look_up_128 : look_up_16)(table, in, count, out);
}

constexpr ColourLoops loops = {look_up, luma_sum, saturate, turn_hue, sharpen, extremes};

}  // namespace

const ColourLoops& colour_loops_avx512() { return loops; }

}  // namespace millrace::data
