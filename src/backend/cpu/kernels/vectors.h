// Which of the CPUs that sources are compiled for (…_avx512.cpp, …_bf16_avx512.cpp, …_avx2.cpp,
// …_baseline.cpp) this one is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <millrace/type.h>

namespace millrace::cpu {

bool has_avx512();
bool has_avx512_bf16();
bool has_avx2();

/// Of functions that are compiled for several CPUs, those that run on this one, the fastest first.
template <typename Functions>
std::vector<const Functions*> for_this_cpu(const Functions& (*avx512)(), const Functions& (*avx2)(),
                                           const Functions& (*baseline)(),
                                           const Functions& (*avx512_bf16)() = nullptr) {
  std::vector<const Functions*> list;
  if (avx512_bf16 && has_avx512_bf16()) list.push_back(&avx512_bf16());
  if (has_avx512()) list.push_back(&avx512());
  if (has_avx2()) list.push_back(&avx2());
  list.push_back(&baseline());
  return list;
}

/// Why kernels that multiply f32 by AVX2 or AVX-512, and bf16 by AVX-512, do not take a dtype here; nullopt
/// when they do.
std::optional<std::string> why_no_products(DType dtype);

}  // namespace millrace::cpu
