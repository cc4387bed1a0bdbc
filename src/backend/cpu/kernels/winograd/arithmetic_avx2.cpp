// Compiled for AVX2 whatever the rest of the program is compiled for, so nothing but intrinsics may be
// included: an inline function of the library compiled here could be linked into the rest.
#include <cstdint>
#include <immintrin.h>

#include "backend/cpu/kernels/vectors_avx2.inc"

namespace millrace::cpu::winograd {
namespace {

using V = __m256;
using Mask = __m256i;

constexpr int kLanes = 8;
constexpr int kBlockRows = 6;
constexpr int kChunkBlocks[] = {4, 4, 10};

inline Mask all_lanes() { return _mm256_set1_epi32(-1); }

inline V load(const float* from) { return _mm256_loadu_ps(from); }
inline V load(const float* from, Mask mask) { return _mm256_maskload_ps(from, mask); }
inline void store(float* to, V x) { _mm256_storeu_ps(to, x); }
inline void store(float* to, Mask mask, V x) { _mm256_maskstore_ps(to, mask, x); }
inline V set1(float x) { return _mm256_set1_ps(x); }
inline V add(V x, V y) { return _mm256_add_ps(x, y); }
inline V sub(V x, V y) { return _mm256_sub_ps(x, y); }
inline V mul(V x, V y) { return _mm256_mul_ps(x, y); }
inline V fmadd(V x, V y, V z) { return _mm256_fmadd_ps(x, y, z); }
inline V min(V x, V y) { return _mm256_min_ps(x, y); }
inline V max(V x, V y) { return _mm256_max_ps(x, y); }

// Windows are read and written as they lie, eight elements at a time, which change places with the columns:
// gathers take several times as long here, and there are no scatters. Of 9 or 25 elements one is left.

template <int kCount>
inline void gather(const float* from, int64_t step, int64_t columns, V (&g)[kCount]) {
  static_assert(kCount % 8 == 1);
#pragma GCC unroll 3
  for (int e = 0; e + 8 <= kCount; e += 8) {
    V x[8];
#pragma GCC unroll 8
    for (int n = 0; n < 8; ++n) x[n] = n < columns ? load(from + n * step + e) : set1(0);
    transpose(x);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) g[e + i] = x[i];
  }
  const float* const last = from + kCount - 1;
  const auto at = [&](int64_t n) __attribute__((always_inline)) { return n < columns ? last[n * step] : 0; };
  g[kCount - 1] = _mm256_setr_ps(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
}

template <int kCount>
inline void scatter(float* to, int64_t step, int64_t columns, const V (&g)[kCount]) {
  static_assert(kCount % 8 == 1);
#pragma GCC unroll 3
  for (int e = 0; e + 8 <= kCount; e += 8) {
    V x[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) x[i] = g[e + i];
    transpose(x);
#pragma GCC unroll 8
    for (int n = 0; n < 8; ++n)
      if (n < columns) store(to + n * step + e, x[n]);
  }
  float last[8];
  store(last, g[kCount - 1]);
#pragma GCC unroll 8
  for (int n = 0; n < 8; ++n)
    if (n < columns) to[n * step + kCount - 1] = last[n];
}

}  // namespace
}  // namespace millrace::cpu::winograd

#include "backend/cpu/kernels/winograd/arithmetic.inc"

namespace millrace::cpu::winograd {

const Arithmetic& arithmetic_avx2() { return kArithmetic; }

}  // namespace millrace::cpu::winograd
