#include "backend/cpu/kernels/decode/decode_math.h"

#include "backend/cpu/kernels/vectors.h"

namespace millrace::cpu {

std::span<const DecodeMath* const> decode_maths() {
  static const auto maths = for_this_cpu(decode_math_avx512, decode_math_avx2, decode_math_baseline);
  return maths;
}

Bf16Product decode_bf16_product() { return has_avx512_bf16() ? decode_product_bf16_avx512 : nullptr; }

}  // namespace millrace::cpu
