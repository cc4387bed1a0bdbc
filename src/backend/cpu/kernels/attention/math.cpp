#include "backend/cpu/kernels/attention/math.h"

#include "backend/cpu/kernels/vectors.h"

namespace millrace::cpu {

std::span<const AttentionMath* const> attention_maths() {
  static const auto maths = for_this_cpu(attention_math_avx512, attention_math_avx2, attention_math_baseline);
  return maths;
}

const AttentionBf16Math* attention_bf16_math() {
  return has_avx512_bf16() ? &attention_math_bf16_avx512() : nullptr;
}

}  // namespace millrace::cpu
