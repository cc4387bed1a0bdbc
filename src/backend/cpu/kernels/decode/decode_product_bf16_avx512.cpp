#include <immintrin.h>

#define LANES 16
#include "backend/cpu/kernels/decode/decode_math.h"
#include "backend/cpu/kernels/decode/decode_sums.inc"

namespace millrace::cpu {
namespace {

inline float widened(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }

/// Sums of neighbouring pairs, in f32.
struct HalfPairs {
  using Number = uint16_t;
  static constexpr int64_t step = 32;
  static __m512i read(const uint16_t* from) { return _mm512_loadu_si512(from); }
  static Vector multiply_add(Vector sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static float one(uint16_t a, uint16_t b) { return widened(a) * widened(b); }
  /// To the nearest, ties to even; NaN stays one.
  static void put(uint16_t* to, float value) {
    const auto bits = __builtin_bit_cast(uint32_t, value);
    *to = static_cast<uint16_t>(value != value ? (bits >> 16) | 0x40
                                               : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

}  // namespace

void decode_product_bf16_avx512(const uint16_t* x, const uint16_t* w, uint16_t* y, int64_t m, int64_t k,
                                int64_t n, int64_t first, int64_t last) {
  product_of<HalfPairs>(x, w, y, m, k, n, first, last);
}

}  // namespace millrace::cpu
