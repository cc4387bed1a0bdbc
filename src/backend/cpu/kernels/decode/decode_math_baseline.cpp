#define LANES 4
#define FUNCTION decode_math_baseline
#include "backend/cpu/kernels/decode/decode_math.inc"
