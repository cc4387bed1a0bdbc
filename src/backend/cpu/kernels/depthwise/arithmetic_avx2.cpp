#define LANES 8
#define FUNCTION arithmetic_avx2
#include "backend/cpu/kernels/depthwise/arithmetic.inc"
