#define LANES 4
#define FUNCTION arithmetic_baseline
#include "backend/cpu/kernels/depthwise/arithmetic.inc"
