#define LANES 16
#define FUNCTION decode_math_avx512
#include "backend/cpu/kernels/decode/decode_math.inc"
