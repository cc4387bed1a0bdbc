#include "backend/cpu/kernels/gemm/elements_bf16.inc"

namespace millrace::cpu::gemm {
static_assert(kUnit * kBytes == 4);  // of Unit; and the formatter leaves the order of the files
}

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
  static constexpr Arithmetic bf16 = of_elements(160, interleave, shuffle);
  return bf16;
}

}  // namespace millrace::cpu::gemm
