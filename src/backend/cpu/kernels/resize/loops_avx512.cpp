#include <cstdint>
#include <immintrin.h>

#include "backend/cpu/kernels/resize/loops.h"

namespace millrace::cpu {
namespace {

#include "backend/cpu/kernels/resize/loops_bytes.inc"

void across(const uint8_t* row, int channels, const int* first, const int* taps, const int32_t* weights,
            int width, int count, uint8_t* out) {
  if (channels != 3) return across_grey(row, first, taps, weights, width, count, out);
  // Four pixels of three bytes become four lanes of four 32-bit numbers.
  const __m128i spread = _mm_set_epi8(-1, 11, 10, 9, -1, 8, 7, 6, -1, 5, 4, 3, -1, 2, 1, 0);
  const __m512i each = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
  const __m128i half = _mm_set1_epi32(1 << (kWeightBits - 1));
  for (int x = 0; x < count; ++x, weights += width, out += 3) {
    const uint8_t* from = row + 3 * first[x];
    __m512i sum = _mm512_zextsi128_si512(half);
    for (int k = 0; k < taps[x]; k += 4, from += 12) {
      const __m512i pixels = _mm512_cvtepu8_epi32(_mm_shuffle_epi8(load(from), spread));
      const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + k));
      const __m512i factors = _mm512_permutexvar_epi32(each, _mm512_castsi128_si512(four));
      sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(pixels, factors));
    }
    const __m256i two = _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
    store_pixel(out, _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1)));
  }
}

void down(const uint8_t* rows, int64_t stride, const int32_t* weights, int taps, int64_t bytes,
          uint8_t* out) {
  const __m512i half = _mm512_set1_epi32(1 << (kWeightBits - 1));
  for (int64_t i = 0; i < bytes; i += 32) {
    __m512i low = half, high = half;
    const uint8_t* from = rows + i;
    for (int k = 0; k < taps; ++k, from += stride) {
      const __m512i factor = _mm512_set1_epi32(weights[k]);
      low = _mm512_add_epi32(low, _mm512_mullo_epi32(_mm512_cvtepu8_epi32(load(from)), factor));
      high = _mm512_add_epi32(high, _mm512_mullo_epi32(_mm512_cvtepu8_epi32(load(from + 16)), factor));
    }
    store(out + i, _mm512_cvtusepi32_epi8(_mm512_srli_epi32(low, kWeightBits)));
    store(out + i + 16, _mm512_cvtusepi32_epi8(_mm512_srli_epi32(high, kWeightBits)));
  }
}

constexpr ResizeLoops loops = {across, down, apart, together, turned};

}  // namespace

const ResizeLoops& resize_loops_avx512() { return loops; }

}  // namespace millrace::cpu
