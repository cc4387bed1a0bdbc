#define LANES 16
#define PANEL 4
#define NAME "AVX-512"
#define FUNCTION attention_math_avx512
#include "backend/cpu/kernels/attention/math.inc"
