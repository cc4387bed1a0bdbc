#define LANES 8
#define FUNCTION attention_math_avx2
#include "backend/cpu/kernels/attention/math.inc"
