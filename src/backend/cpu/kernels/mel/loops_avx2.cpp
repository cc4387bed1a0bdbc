#define LANES 8
#define FUNCTION mel_loops_avx2
#include "backend/cpu/kernels/mel/loops.inc"
