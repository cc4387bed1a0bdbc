// What becomes of a row of sums before it is stored, once for each kind of CPU.
#pragma once

#include <cstdint>
#include <span>

namespace millrace::cpu {

/// to[count] = (sums + bias + added) limited to [low, high], stored as f32 or bf16; `added`, of the same kind
/// as `to`, may be null, and `to` may be `sums`. NaN stays NaN.
struct EpilogueMath {
  using Finish = void (*)(const float* sums, const float* bias, const void* added, void* to, int64_t count,
                          float low, float high);
  Finish f32, bf16;
};

/// Those that this CPU can run, the fastest first; there is always one.
std::span<const EpilogueMath* const> epilogue_maths();

// One file each, compiled for that CPU.
const EpilogueMath& epilogue_math_bf16_avx512();
const EpilogueMath& epilogue_math_avx512();
const EpilogueMath& epilogue_math_avx2();
const EpilogueMath& epilogue_math_baseline();

}  // namespace millrace::cpu
