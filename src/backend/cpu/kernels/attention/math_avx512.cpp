#define LANES 16
#define FUNCTION attention_math_avx512
#include "backend/cpu/kernels/attention/math.inc"
