#define LANES 4
#define FUNCTION mel_loops_baseline
#include "backend/cpu/kernels/mel/loops.inc"
