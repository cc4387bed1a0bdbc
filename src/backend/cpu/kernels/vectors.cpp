#include "backend/cpu/kernels/vectors.h"

#include "base/cpu.h"
#include "base/format.h"

namespace millrace::cpu {

// What CMakeLists.txt compiles ..._avx512.cpp and ..._avx2.cpp for.
bool has_avx512() {
  static const bool has =
      has_avx2() && cpu_has("avx512f") && cpu_has("avx512vl") && cpu_has("avx512dq") && cpu_has("avx512bw");
  return has;
}

bool has_avx512_bf16() {
  static const bool has = has_avx512() && cpu_has("avx512_bf16");
  return has;
}

bool has_avx2() {
  static const bool has = cpu_has("avx2") && cpu_has("fma");
  return has;
}

std::optional<std::string> why_no_products(DType dtype) {
  if (dtype != f32 && dtype != bf16) return fmt::format("only f32 and bf16, not {}", dtype.name());
  if (dtype == f32 && !has_avx2()) return "this CPU has no AVX2";
  if (dtype == bf16 && !has_avx512_bf16()) return "this CPU has no AVX-512 BF16";
  return std::nullopt;
}

}  // namespace millrace::cpu
