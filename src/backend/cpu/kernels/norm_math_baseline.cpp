#define LANES 4
#define FUNCTION norm_math_baseline
#include "backend/cpu/kernels/norm_math.inc"
