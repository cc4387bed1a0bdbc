#define LANES 8
#define FUNCTION decode_math_avx2
#include "backend/cpu/kernels/decode/decode_math.inc"
