#include "backend/cpu/kernels/attention/math.h"

#include <vector>

#include "backend/cpu/kernels/vectors.h"

namespace millrace::cpu {

std::span<const AttentionMath* const> attention_maths() {
  static const std::vector<const AttentionMath*> maths = [] {
    std::vector<const AttentionMath*> list;
    if (has_avx512()) list.push_back(&attention_math_avx512());
    if (has_avx2()) list.push_back(&attention_math_avx2());
    list.push_back(&attention_math_baseline());
    return list;
  }();
  return maths;
}

const AttentionBf16Math* attention_bf16_math() {
  return has_avx512_bf16() ? &attention_math_bf16_avx512() : nullptr;
}

}  // namespace millrace::cpu
