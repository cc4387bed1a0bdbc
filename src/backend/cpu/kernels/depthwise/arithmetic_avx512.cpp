#define LANES 16
#define NAME "AVX-512"
#define FUNCTION arithmetic_avx512
#include "backend/cpu/kernels/depthwise/arithmetic.inc"
