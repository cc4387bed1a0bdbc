#define LANES 8
#define FUNCTION epilogue_math_avx2
#include "backend/cpu/kernels/epilogue_math.inc"
