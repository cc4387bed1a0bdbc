#define FUNCTION arithmetic_bf16_tiles
#include "backend/cpu/kernels/gemm/tiles_software.inc"

// After the class that it multiplies by.
#include "backend/cpu/kernels/gemm/tiles.inc"
