#define LANES 4
#define PANEL 2
#define NAME "SSE2"
#define FUNCTION attention_math_baseline
#include "backend/cpu/kernels/attention/math.inc"
