#define LANES 8
#define PANEL 2
#define NAME "AVX2"
#define FUNCTION attention_math_avx2
#include "backend/cpu/kernels/attention/math.inc"
