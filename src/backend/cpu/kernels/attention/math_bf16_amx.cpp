#include "backend/cpu/kernels/gemm/tiles_amx.inc"

// After the class that it multiplies by.
#include "backend/cpu/kernels/attention/tile_products.inc"

namespace millrace::cpu {

const AttentionBf16Math& attention_math_bf16_amx() {
  static const AttentionBf16Math math = gemm::attention_by_tiles("AMX BF16");
  return math;
}

}  // namespace millrace::cpu
