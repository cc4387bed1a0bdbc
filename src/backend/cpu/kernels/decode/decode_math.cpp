#include "backend/cpu/kernels/decode/decode_math.h"

#include <vector>

#include "backend/cpu/kernels/vectors.h"

namespace millrace::cpu {

std::span<const DecodeMath* const> decode_maths() {
  static const std::vector<const DecodeMath*> maths = [] {
    std::vector<const DecodeMath*> list;
    if (has_avx512()) list.push_back(&decode_math_avx512());
    if (has_avx2()) list.push_back(&decode_math_avx2());
    list.push_back(&decode_math_baseline());
    return list;
  }();
  return maths;
}

Bf16Product decode_bf16_product() { return has_avx512_bf16() ? decode_product_bf16_avx512 : nullptr; }

}  // namespace millrace::cpu
