#include <cmath>

#include "data/augment/warp_loops.h"

namespace millrace::data {
namespace {

#include "data/augment/warp_loops.inc"

constexpr WarpLoops loops = {warp_all, turn_all};

}  // namespace

const WarpLoops& warp_loops_avx2() { return loops; }

}  // namespace millrace::data
