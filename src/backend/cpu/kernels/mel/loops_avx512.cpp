#define LANES 16
#define FUNCTION mel_loops_avx512
#include "backend/cpu/kernels/mel/loops.inc"
