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
  static constexpr Arithmetic bf16{.unit = kUnit,
                                   .bytes = kBytes,
                                   .block_rows = block_rows,
                                   .panel = block_columns,
                                   .left_block = left_block,
                                   .left_side = LeftSide::as_it_lies,
                                   .left_step = column_step,
                                   .rate = 160,
                                   .multiply = multiply,
                                   .pack_left = pack_left,
                                   .pack_left_rows = pack_left_rows,
                                   .pack_rows = pack_rows,
                                   .pack_columns = pack_columns,
                                   .interleave = interleave,
                                   .round = round,
                                   .shuffle = shuffle};
  return bf16;
}

}  // namespace millrace::cpu::gemm
