// Products by tiles, whose speed is a machine's limit. In assembly, as the intrinsics need flags of their
// own.
#include <cstring>

#include "runtime/machine_loops.h"

namespace millrace {
namespace {

constexpr int64_t kTileBytes = 16 * 64, kRoundBytes = 4 * kTileBytes;

void begin() {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } const config;
  static_assert(sizeof config == 64);
  __asm__ volatile(
      "ldtilecfg %0\n\t"
      "tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3\n\t"
      "tilezero %%tmm4\n\ttilezero %%tmm5\n\ttilezero %%tmm6\n\ttilezero %%tmm7" ::"m"(config));
}

void load_round(const char* from) {
  __asm__ volatile(
      "tileloadd (%0,%1,1), %%tmm4\n\t"
      "tileloadd 1024(%0,%1,1), %%tmm5\n\t"
      "tileloadd 2048(%0,%1,1), %%tmm6\n\t"
      "tileloadd 3072(%0,%1,1), %%tmm7" ::"r"(from),
      "r"(int64_t{64})
      : "memory");
}

void multiply_bf16() {
  __asm__ volatile(
      "tdpbf16ps %tmm6, %tmm4, %tmm0\n\t"
      "tdpbf16ps %tmm7, %tmm4, %tmm1\n\t"
      "tdpbf16ps %tmm6, %tmm5, %tmm2\n\t"
      "tdpbf16ps %tmm7, %tmm5, %tmm3");
}

void multiply_int8() {
  __asm__ volatile(
      "tdpbssd %tmm6, %tmm4, %tmm0\n\t"
      "tdpbssd %tmm7, %tmm4, %tmm1\n\t"
      "tdpbssd %tmm6, %tmm5, %tmm2\n\t"
      "tdpbssd %tmm7, %tmm5, %tmm3");
}

template <void (*multiply)()>
double run(const void* operands, int64_t bytes, int64_t rounds, int64_t operations) {
  begin();
  const auto* const from = static_cast<const char*>(operands);
  const int64_t whole = bytes / kRoundBytes * kRoundBytes;
  int64_t at = 0;
  for (int64_t i = 0; i < rounds; ++i) {
    if (whole > 0) {
      load_round(from + at);
      at = at + kRoundBytes < whole ? at + kRoundBytes : 0;
    }
    multiply();
  }
  __asm__ volatile("tilerelease");
  return static_cast<double>(operations) * static_cast<double>(rounds);
}

// Of a tile of sums: 16 × 16, each of 64 bytes of the one side and of the other; a multiply-add is two.
constexpr int64_t kBf16Operations = 2 * 16 * 16 * 32, kInt8Operations = 2 * 16 * 16 * 64;

}  // namespace

double run_bf16_tiles(const void* operands, int64_t bytes, int64_t rounds) {
  return run<multiply_bf16>(operands, bytes, rounds, 4 * kBf16Operations);
}

double run_int8_tiles(const void* operands, int64_t bytes, int64_t rounds) {
  return run<multiply_int8>(operands, bytes, rounds, 4 * kInt8Operations);
}

}  // namespace millrace
