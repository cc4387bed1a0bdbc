// Compiled for AVX-512 whatever the rest of the program is compiled for, so nothing but intrinsics may be
// included: an inline function of the library compiled here could be linked into the rest.
#include <cstdint>
#include <immintrin.h>

namespace millrace::cpu::winograd {
namespace {

using V = __m512;
using Mask = __mmask16;

constexpr int kLanes = 16;
constexpr int kBlockRows = 14;
constexpr int kChunkBlocks[] = {2, 4, 8};

inline Mask first_lanes(int64_t count) {
  return count >= 16 ? static_cast<Mask>(0xffff) : static_cast<Mask>((1U << (count < 0 ? 0 : count)) - 1);
}
inline Mask all_lanes() { return 0xffff; }

inline V load(const float* from) { return _mm512_loadu_ps(from); }
inline V load(const float* from, Mask mask) { return _mm512_maskz_loadu_ps(mask, from); }
inline void store(float* to, V x) { _mm512_storeu_ps(to, x); }
inline void store(float* to, Mask mask, V x) { _mm512_mask_storeu_ps(to, mask, x); }
inline V set1(float x) { return _mm512_set1_ps(x); }
inline V add(V x, V y) { return _mm512_add_ps(x, y); }
inline V sub(V x, V y) { return _mm512_sub_ps(x, y); }
inline V mul(V x, V y) { return _mm512_mul_ps(x, y); }
inline V fmadd(V x, V y, V z) { return _mm512_fmadd_ps(x, y, z); }
inline void accumulate(V& sum, V x, V y) { asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y)); }
inline V min(V x, V y) { return _mm512_min_ps(x, y); }
inline V max(V x, V y) { return _mm512_max_ps(x, y); }

inline __m512i multiples(int64_t step) {
  return _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                            _mm512_set1_epi32(static_cast<int>(step)));
}

template <int kCount>
inline void gather(const float* from, int64_t step, int64_t columns, V (&g)[kCount]) {
  const Mask mask = first_lanes(columns);
  const __m512i offsets = multiples(step);
#pragma GCC unroll 25
  for (int e = 0; e < kCount; ++e)
    g[e] = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, offsets, from + e, 4);
}

template <int kCount>
inline void scatter(float* to, int64_t step, int64_t columns, const V (&g)[kCount]) {
  const Mask mask = first_lanes(columns);
  const __m512i offsets = multiples(step);
#pragma GCC unroll 25
  for (int e = 0; e < kCount; ++e) _mm512_mask_i32scatter_ps(to + e, mask, offsets, g[e], 4);
}

}  // namespace
}  // namespace millrace::cpu::winograd

#include "backend/cpu/kernels/winograd/arithmetic.inc"

namespace millrace::cpu::winograd {

const Arithmetic& arithmetic_avx512() { return kArithmetic; }

}  // namespace millrace::cpu::winograd
