#include "runtime/machine_loops.h"

#include <array>
#include <cstring>
#include <immintrin.h>
#include <utility>

#include "base/cpu.h"

namespace millrace {
namespace {

// Twice the latency times the units of today's cores, and few enough to stay in 16 registers.
constexpr size_t kChains = 12;

// Makes the compiler forget what it knows of a value: chains that begin alike would be one.
#define MILLRACE_FORGET(x) asm volatile("" : "+x"(x))

/// Keeps a value alive.
template <typename T>
void consume(const T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

// Values stay near 1: no denormals, no infinities. One function a width: the target attribute does not reach
// templates. NOLINTBEGIN(bugprone-macro-parentheses): V is a type, START stands in declarations
#define MILLRACE_CHAINS(V, START, STEP)                                                                   \
  V x0 = START, x1 = START, x2 = START, x3 = START, x4 = START, x5 = START, x6 = START, x7 = START,       \
    x8 = START, x9 = START, x10 = START, x11 = START;                                                     \
  MILLRACE_FORGET(x0);                                                                                    \
  MILLRACE_FORGET(x1);                                                                                    \
  MILLRACE_FORGET(x2);                                                                                    \
  MILLRACE_FORGET(x3);                                                                                    \
  MILLRACE_FORGET(x4);                                                                                    \
  MILLRACE_FORGET(x5);                                                                                    \
  MILLRACE_FORGET(x6);                                                                                    \
  MILLRACE_FORGET(x7);                                                                                    \
  MILLRACE_FORGET(x8);                                                                                    \
  MILLRACE_FORGET(x9);                                                                                    \
  MILLRACE_FORGET(x10);                                                                                   \
  MILLRACE_FORGET(x11);                                                                                   \
  for (int64_t i = 0; i < rounds; ++i) {                                                                  \
    x0 = STEP(x0), x1 = STEP(x1), x2 = STEP(x2), x3 = STEP(x3), x4 = STEP(x4);                            \
    x5 = STEP(x5), x6 = STEP(x6), x7 = STEP(x7), x8 = STEP(x8), x9 = STEP(x9);                            \
    x10 = STEP(x10), x11 = STEP(x11);                                                                     \
  }                                                                                                       \
  consume(x0), consume(x1), consume(x2), consume(x3), consume(x4), consume(x5), consume(x6), consume(x7), \
      consume(x8), consume(x9), consume(x10), consume(x11)
// NOLINTEND(bugprone-macro-parentheses)

__attribute__((target("avx512f"))) void fma_avx512(int64_t rounds) {
  const __m512 factor = _mm512_set1_ps(0.999F), term = _mm512_set1_ps(0.001F);
#define MILLRACE_STEP(x) _mm512_fmadd_ps(x, factor, term)
  MILLRACE_CHAINS(__m512, factor, MILLRACE_STEP);
#undef MILLRACE_STEP
}

__attribute__((target("avx2,fma"))) void fma_avx2(int64_t rounds) {
  const __m256 factor = _mm256_set1_ps(0.999F), term = _mm256_set1_ps(0.001F);
#define MILLRACE_STEP(x) _mm256_fmadd_ps(x, factor, term)
  MILLRACE_CHAINS(__m256, factor, MILLRACE_STEP);
#undef MILLRACE_STEP
}

void multiply_add_sse(int64_t rounds) {
  const __m128 factor = _mm_set1_ps(0.999F), term = _mm_set1_ps(0.001F);
#define MILLRACE_STEP(x) _mm_add_ps(_mm_mul_ps(x, factor), term)
  MILLRACE_CHAINS(__m128, factor, MILLRACE_STEP);
#undef MILLRACE_STEP
}

__attribute__((target("avx512f,avx512bf16"))) void dot_bf16(int64_t rounds) {
  const __m512 start = _mm512_set1_ps(1);
  const __m512bh small = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-3F), _mm512_set1_ps(1e-3F));
#define MILLRACE_STEP(x) _mm512_dpbf16_ps(x, small, small)
  MILLRACE_CHAINS(__m512, start, MILLRACE_STEP);
#undef MILLRACE_STEP
}
#undef MILLRACE_CHAINS
#undef MILLRACE_FORGET

__attribute__((target("avx512f"))) void copy_avx512(char* to, const char* from, size_t bytes, bool stream) {
  for (size_t i = 0; i < bytes; i += 256)
    for (size_t k = i; k < i + 256; k += 64) {
      const __m512i value = _mm512_loadu_si512(from + k);
      if (stream)
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + k), value);
      else
        _mm512_storeu_si512(to + k, value);
    }
  if (stream) _mm_sfence();
}

__attribute__((target("avx2"))) void copy_avx2(char* to, const char* from, size_t bytes, bool stream) {
  for (size_t i = 0; i < bytes; i += 256)
    for (size_t k = i; k < i + 256; k += 32) {
      const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + k));
      if (stream)
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + k), value);
      else
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + k), value);
    }
  if (stream) _mm_sfence();
}

}  // namespace

double run_fp32_loop(int64_t rounds) {
  int lanes = 4;
  if (cpu_has("avx512f")) {
    fma_avx512(rounds);
    lanes = 16;
  } else if (cpu_has("avx2") && cpu_has("fma")) {
    fma_avx2(rounds);
    lanes = 8;
  } else {
    multiply_add_sse(rounds);
  }
  return 2.0 * lanes * static_cast<double>(kChains) * static_cast<double>(rounds);
}

double run_bf16_loop(int64_t rounds) {
  if (!cpu_has("avx512_bf16")) return 0;
  dot_bf16(rounds);
  return 2.0 * 32 * static_cast<double>(kChains) * static_cast<double>(rounds);
}

void copy_vectors(void* to, const void* from, size_t bytes, bool stream) {
  const size_t whole = bytes / 256 * 256;
  if (cpu_has("avx512f"))
    copy_avx512(static_cast<char*>(to), static_cast<const char*>(from), whole, stream);
  else if (cpu_has("avx2"))
    copy_avx2(static_cast<char*>(to), static_cast<const char*>(from), whole, stream);
  else
    std::memcpy(to, from, whole);
  std::memcpy(static_cast<char*>(to) + whole, static_cast<const char*>(from) + whole, bytes - whole);
}

}  // namespace millrace
