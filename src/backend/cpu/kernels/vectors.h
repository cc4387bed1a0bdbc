// Which of the CPUs that sources are compiled for (…_avx512.cpp, …_bf16_avx512.cpp, …_avx2.cpp,
// …_baseline.cpp) this one is.
#pragma once

namespace millrace::cpu {

bool has_avx512();
bool has_avx512_bf16();
bool has_avx2();

}  // namespace millrace::cpu
