#include <cstdint>
#include <immintrin.h>

#include "backend/cpu/kernels/resize/loops.h"

namespace millrace::cpu {
namespace {

#include "backend/cpu/kernels/resize/loops_bytes.inc"

void across(const uint8_t* row, int channels, const int* first, const int* taps, const int32_t* weights,
            int width, int count, uint8_t* out) {
  if (channels != 3) return across_grey(row, first, taps, weights, width, count, out);
  // Two pixels of three bytes become two lanes of four 32-bit numbers.
  const __m128i spread = _mm_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, 5, 4, 3, -1, 2, 1, 0);
  const __m256i each = _mm256_set_epi32(1, 1, 1, 1, 0, 0, 0, 0);
  const __m128i half = _mm_set1_epi32(1 << (kWeightBits - 1));
  for (int x = 0; x < count; ++x, weights += width, out += 3) {
    const uint8_t* from = row + 3 * first[x];
    __m256i sum = _mm256_zextsi128_si256(half);
    for (int k = 0; k < taps[x]; k += 2, from += 6) {
      const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
      const __m256i pixels = _mm256_cvtepu8_epi32(_mm_shuffle_epi8(eight, spread));
      const __m128i two = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights + k));
      const __m256i factors = _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(two), each);
      sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(pixels, factors));
    }
    store_pixel(out, _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1)));
  }
}

void down(const uint8_t* rows, int64_t stride, const int32_t* weights, int taps, int64_t bytes,
          uint8_t* out) {
  const __m256i half = _mm256_set1_epi32(1 << (kWeightBits - 1));
  for (int64_t i = 0; i < bytes; i += 16) {
    __m256i low = half, high = half;
    const uint8_t* from = rows + i;
    for (int k = 0; k < taps; ++k, from += stride) {
      const __m256i factor = _mm256_set1_epi32(weights[k]);
      const __m128i sixteen = load(from);
      low = _mm256_add_epi32(low, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(sixteen), factor));
      high = _mm256_add_epi32(high,
                              _mm256_mullo_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(sixteen, 8)), factor));
    }
    // Packing works within lanes of 128 bits: the halves of both come interleaved, and are put in order.
    const __m256i words =
        _mm256_packus_epi32(_mm256_srli_epi32(low, kWeightBits), _mm256_srli_epi32(high, kWeightBits));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xD8);
    store(out + i, _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
  }
}

constexpr ResizeLoops loops = {across, down, apart, together, turned};

}  // namespace

const ResizeLoops& resize_loops_avx2() { return loops; }

}  // namespace millrace::cpu
