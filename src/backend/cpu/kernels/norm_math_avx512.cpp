#define LANES 16
#define FUNCTION norm_math_avx512
#include "backend/cpu/kernels/norm_math.inc"
