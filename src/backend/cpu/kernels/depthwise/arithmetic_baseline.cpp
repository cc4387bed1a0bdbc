#define LANES 4
#define NAME "SSE2"
#define FUNCTION arithmetic_baseline
#include "backend/cpu/kernels/depthwise/arithmetic.inc"
