// Which of the CPUs that sources are compiled for (…_avx512.cpp, …_bf16_avx512.cpp, …_avx2.cpp,
// …_baseline.cpp) this one is.
#pragma once

#include <optional>
#include <string>

#include <millrace/type.h>

namespace millrace::cpu {

bool has_avx512();
bool has_avx512_bf16();
bool has_avx2();

/// Why kernels that multiply f32 by AVX2 or AVX-512, and bf16 by AVX-512, do not take a dtype here; nullopt
/// when they do.
std::optional<std::string> why_no_products(DType dtype);

}  // namespace millrace::cpu
