#include <cstdint>
#include <immintrin.h>
#include <type_traits>

#include "data/augment/colour_loops.h"

namespace millrace::data {
namespace {

constexpr int lanes = 8;
using I = int32_t __attribute__((vector_size(32)));
using F = float __attribute__((vector_size(32)));

inline I load(const uint8_t* at) {
  return reinterpret_cast<I>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
}
inline void store(uint8_t* at, I value) {
  const __m256i all = reinterpret_cast<__m256i>(value);
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(at), _mm_packus_epi16(words, words));
}
inline F floats(I value) { return _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(value)); }
inline I whole(F value) { return reinterpret_cast<I>(_mm256_cvttps_epi32(value)); }
inline F fused(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
inline F least(F a, F b) { return _mm256_min_ps(a, b); }
inline F most(F a, F b) { return _mm256_max_ps(a, b); }
inline I least(I a, I b) {
  return reinterpret_cast<I>(_mm256_min_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
inline I most(I a, I b) {
  return reinterpret_cast<I>(_mm256_max_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

#include "data/augment/colour_lanes.inc"

/// Sixteen entries at a time. A place that is not of these has its highest bit set, and gets 0.
void look_up(const uint8_t* table, const uint8_t* in, int64_t count, uint8_t* out) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i));
    __m256i found = _mm256_setzero_si256();
    for (int k = 0; k < 16; ++k) {
      const __m256i entries =
          _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k)));
      // Of these: 0 to 15 after the xor, and up to 127 with 112 added; saturated, all others are above.
      const __m256i place = _mm256_adds_epu8(
          _mm256_xor_si256(at, _mm256_set1_epi8(static_cast<char>(16 * k))), _mm256_set1_epi8(112));
      found = _mm256_or_si256(found, _mm256_shuffle_epi8(entries, place));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), found);
  }
  for (; i < count; ++i) out[i] = table[in[i]];
}

constexpr ColourLoops loops = {look_up, luma_sum, saturate, turn_hue, sharpen, extremes};

}  // namespace

const ColourLoops& colour_loops_avx2() { return loops; }

}  // namespace millrace::data
