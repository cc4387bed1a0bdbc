#define NAME "AMX BF16"
#define FUNCTION attention_math_bf16_amx
#include "backend/cpu/kernels/gemm/tiles_amx.inc"

// After the class that it multiplies by.
#include "backend/cpu/kernels/attention/tile_products.inc"
