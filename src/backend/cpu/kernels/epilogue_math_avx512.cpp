#define LANES 16
#define FUNCTION epilogue_math_avx512
#include "backend/cpu/kernels/epilogue_math.inc"
