#define LANES 4
#define FUNCTION attention_math_baseline
#include "backend/cpu/kernels/attention/math.inc"
