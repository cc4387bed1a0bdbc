#define LANES 8
#define NAME "AVX2"
#define FUNCTION decode_math_avx2
#include "backend/cpu/kernels/decode/decode_math.inc"
