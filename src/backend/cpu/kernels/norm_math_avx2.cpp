#define LANES 8
#define NAME "AVX2"
#define FUNCTION norm_math_avx2
#include "backend/cpu/kernels/norm_math.inc"
