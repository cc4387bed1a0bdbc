#include "backend/cpu/kernels/gemm/tiles_software.inc"

// After the class that it multiplies by.
#include "backend/cpu/kernels/gemm/tiles.inc"

namespace millrace::cpu::gemm {

const Arithmetic& arithmetic_bf16_tiles() {
  static const Arithmetic tiles = by_tiles();
  return tiles;
}

}  // namespace millrace::cpu::gemm
