#include <immintrin.h>

#define LANES 16
#include "backend/cpu/kernels/attention/math.h"
#include "backend/cpu/kernels/attention/registers.inc"

namespace millrace::cpu {
namespace {

constexpr int64_t block = attention_block;

struct Pairs {
  using Left = uint16_t;
  using Right = uint32_t;
  static __m512i left(const uint16_t* a) {
    int32_t pair;
    __builtin_memcpy(&pair, a, 4);
    return _mm512_set1_epi32(pair);
  }
  static __m512i right(const uint32_t* b) { return _mm512_loadu_si512(b); }
  static __m512 multiply_add(__m512 sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

void multiply(const uint16_t* a, int64_t a_row, int64_t a_step, const uint32_t* b, int64_t b_row, float* c,
              int64_t c_row, int64_t rows, int64_t columns, int64_t pairs, float factor, bool add) {
  multiply_tiles<Pairs>(a, a_row, a_step, b, b_row, c, c_row, rows, columns, pairs, factor, add);
}

/// exp within 3e-6 of the result, which is rounded to a thousandth of that: 2^n · polynomial. NaN stays.
inline __m512 exp_for_bf16(__m512 x) {
  // −∞ − −∞ would be NaN. The second operand is the result when one is NaN.
  const __m512 t = _mm512_mul_ps(_mm512_max_ps(_mm512_set1_ps(-200), x), _mm512_set1_ps(1.44269504f));
  const __m512 n = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = _mm512_sub_ps(t, n);
  __m512 p = _mm512_fmadd_ps(r, _mm512_set1_ps(0.00958285f), _mm512_set1_ps(0.05590643f));
  p = _mm512_fmadd_ps(r, p, _mm512_set1_ps(0.24024099f));
  p = _mm512_fmadd_ps(r, p, _mm512_set1_ps(0.69312419f));
  p = _mm512_fmadd_ps(r, p, _mm512_set1_ps(1));
  return _mm512_scalef_ps(p, n);
}

/// Two rows of sixteen, rounded, one after the other.
inline __m512i rounded(__m512 first, __m512 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

/// Those two rows, element by element side by side.
inline __m512i paired(__m512i rows) {
  alignas(64) uint16_t index[32];
#pragma GCC unroll 32
  for (int i = 0; i < 32; ++i) index[i] = static_cast<uint16_t>(i / 2 + i % 2 * 16);
  return _mm512_permutexvar_epi16(_mm512_load_si512(index), rows);
}

inline __m512i paired(__m256i first, __m256i second) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(first), _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
}

/// A few vectors of columns at a time, so that their long chains of arithmetic overlap.
template <int Vectors>
inline bool softmax_columns(const float* scores, uint32_t* weights, int64_t rows, float* highest, float* sum,
                            float* factor) {
  __m512 top[Vectors], total[Vectors];
  __mmask16 changed = 0;
#pragma GCC unroll 4
  for (int j = 0; j < Vectors; ++j) top[j] = _mm512_load_ps(highest + j * 16);
  for (int64_t i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j)
      top[j] = _mm512_max_ps(_mm512_load_ps(scores + i * block + j * 16), top[j]);
#pragma GCC unroll 4
  for (int j = 0; j < Vectors; ++j) {
    const __m512 scale = exp_for_bf16(_mm512_sub_ps(_mm512_load_ps(highest + j * 16), top[j]));
    total[j] = _mm512_mul_ps(_mm512_load_ps(sum + j * 16), scale);
    _mm512_store_ps(highest + j * 16, top[j]);
    _mm512_store_ps(factor + j * 16, scale);
    changed |= _mm512_cmp_ps_mask(scale, _mm512_set1_ps(1), _CMP_NEQ_UQ);
  }
  const auto weight = [&](int64_t i, int j) __attribute__((always_inline)) {
    const __m512 e = exp_for_bf16(_mm512_sub_ps(_mm512_load_ps(scores + i * block + j * 16), top[j]));
    total[j] = _mm512_add_ps(total[j], e);
    return e;
  };
  int64_t i = 0;
  for (; i + 2 <= rows; i += 2)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      const __m512 first = weight(i, j), second = weight(i + 1, j);
      _mm512_store_si512(weights + i / 2 * block + j * 16, paired(rounded(first, second)));
    }
  if (i < rows)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j)
      _mm512_store_si512(weights + i / 2 * block + j * 16,
                         paired(rounded(weight(i, j), _mm512_setzero_ps())));
#pragma GCC unroll 4
  for (int j = 0; j < Vectors; ++j) _mm512_store_ps(sum + j * 16, total[j]);
  return changed != 0;
}

bool softmax(const float* scores, uint32_t* weights, int64_t rows, int64_t columns, float* highest,
             float* sum, float* factor) {
  bool changed = false;
  int64_t j = 0;
  for (; j + 32 <= columns; j += 32)
    changed |= softmax_columns<2>(scores + j, weights + j, rows, highest + j, sum + j, factor + j);
  for (; j < columns; j += 16)
    changed |= softmax_columns<1>(scores + j, weights + j, rows, highest + j, sum + j, factor + j);
  return changed;
}

void score_gradient(const float* scores, const float* arrived, int64_t rows, int64_t columns,
                    const float* log_sum, const float* inner, uint16_t* weights, uint16_t* gradients,
                    uint32_t* gradient_pairs) {
  const auto store_rows = [&](uint16_t * to, __m512i both, bool two) __attribute__((always_inline)) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(both));
    if (two) _mm256_store_si256(reinterpret_cast<__m256i*>(to + block), _mm512_extracti64x4_epi64(both, 1));
  };
  for (int64_t i = 0; i < rows; i += 2)
    for (int64_t j = 0; j < columns; j += 16) {
      __m512 weight[2] = {}, gradient[2] = {};
      const bool two = i + 1 < rows;
#pragma GCC unroll 2
      for (int r = 0; r < 2; ++r) {
        if (r == 1 && !two) break;
        const int64_t at = (i + r) * block + j;
        weight[r] = exp_for_bf16(_mm512_sub_ps(_mm512_load_ps(scores + at), _mm512_load_ps(log_sum + j)));
        gradient[r] =
            _mm512_mul_ps(weight[r], _mm512_sub_ps(_mm512_load_ps(arrived + at), _mm512_load_ps(inner + j)));
      }
      const __m512i both = rounded(gradient[0], gradient[1]);
      store_rows(weights + i * block + j, rounded(weight[0], weight[1]), two);
      store_rows(gradients + i * block + j, both, two);
      _mm512_store_si512(gradient_pairs + i / 2 * block + j, paired(both));
    }
}

void pair_rows(const uint16_t* from, int64_t from_row, int64_t rows, int64_t columns, uint32_t* to,
               int64_t to_row) {
  for (int64_t i = 0; i < rows; i += 2)
    for (int64_t j = 0; j < columns; j += 16) {
      const __mmask16 mask = columns - j >= 16 ? __mmask16(0xffff) : __mmask16((1U << (columns - j)) - 1);
      const uint16_t* const at = from + i * from_row + j;
      const __m256i second =
          i + 1 < rows ? _mm256_maskz_loadu_epi16(mask, at + from_row) : _mm256_setzero_si256();
      _mm512_store_si512(to + i / 2 * to_row + j, paired(_mm256_maskz_loadu_epi16(mask, at), second));
    }
}

void pair_columns(const uint16_t* from, int64_t from_row, int64_t rows, int64_t columns, uint32_t* to) {
  const int64_t pairs = columns / 2;
  for (int64_t j = 0; j < pairs; j += 16) {
    const int64_t count = pairs - j < 16 ? pairs - j : 16;
    const __mmask16 mask = __mmask16((1U << count) - 1);
    for (int64_t i = 0; i < block; i += 16) {
      Integers square[16];
#pragma GCC unroll 16
      for (int64_t r = 0; r < 16; ++r)
        square[r] = i + r < rows ? Integers(_mm512_maskz_loadu_epi32(mask, from + (i + r) * from_row + 2 * j))
                                 : Integers{};
      transpose_stages<1>(square);
      uint32_t* const corner = to + j * block + i;
#pragma GCC unroll 16
      for (int64_t r = 0; r < 16; ++r)
        if (r < count) _mm512_store_si512(corner + r * block, __m512i(square[r]));
    }
  }
}

void round(const float* from, uint16_t* to, int64_t count, float factor) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = count - i >= 16 ? __mmask16(0xffff) : __mmask16((1U << (count - i)) - 1);
    const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, from + i), _mm512_set1_ps(factor));
    _mm256_mask_storeu_epi16(to + i, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
  }
}

}  // namespace

const AttentionBf16Math& attention_math_bf16_avx512() {
  static constexpr AttentionBf16Math math = {"AVX-512 BF16", multiply,     softmax, score_gradient,
                                             pair_rows,      pair_columns, round};
  return math;
}

}  // namespace millrace::cpu
