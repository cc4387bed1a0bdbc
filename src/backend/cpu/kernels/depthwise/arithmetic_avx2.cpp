#define LANES 8
#define NAME "AVX2"
#define FUNCTION arithmetic_avx2
#include "backend/cpu/kernels/depthwise/arithmetic.inc"
