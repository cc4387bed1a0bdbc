#include "backend/cpu/kernels/gemm/tiles_software.inc"

// After the class that it multiplies by.
#include "backend/cpu/kernels/attention/tile_products.inc"

namespace millrace::cpu {

const AttentionBf16Math& attention_math_bf16_tiles() {
  static const AttentionBf16Math math = gemm::attention_by_tiles("tiles in software");
  return math;
}

}  // namespace millrace::cpu
