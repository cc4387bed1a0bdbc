#define LANES 8
#define FUNCTION norm_math_avx2
#include "backend/cpu/kernels/norm_math.inc"
