#define LANES 16
#define FUNCTION arithmetic_avx512
#include "backend/cpu/kernels/depthwise/arithmetic.inc"
