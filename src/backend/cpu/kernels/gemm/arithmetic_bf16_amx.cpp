#define FUNCTION arithmetic_bf16_amx
#include "backend/cpu/kernels/gemm/tiles_amx.inc"

// After the class that it multiplies by.
#include "backend/cpu/kernels/gemm/tiles.inc"
