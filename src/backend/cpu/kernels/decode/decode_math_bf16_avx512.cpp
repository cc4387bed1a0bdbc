#define LANES 16
#define FUNCTION decode_math_bf16_avx512
#include "backend/cpu/kernels/decode/decode_math.inc"
