#define LANES 16
#define FUNCTION epilogue_math_bf16_avx512
#include "backend/cpu/kernels/epilogue_math.inc"
