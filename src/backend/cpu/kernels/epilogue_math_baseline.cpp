#define LANES 4
#define FUNCTION epilogue_math_baseline
#include "backend/cpu/kernels/epilogue_math.inc"
