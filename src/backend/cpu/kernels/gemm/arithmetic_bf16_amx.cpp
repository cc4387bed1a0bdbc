#include <cstdint>
#include <cstring>

namespace millrace::cpu::gemm {
namespace {

/// Those of the CPU (Intel, "Architecture Instruction Set Extensions", AMX). Their shapes stay as long as a
/// thread multiplies block after block; others, such as oneDNN, give them shapes of their own between that.
/// In assembly, as the intrinsics of GCC 12 take no numbers from templates, nor say that they read memory.
class Tiles {
 public:
  static void begin() { upper_ = -1; }
  static void end() { __asm__ volatile("tilerelease"); }

  static void shape(int64_t upper, int64_t lower) {
    if (upper == upper_ && lower == lower_) return;
    upper_ = upper;
    lower_ = lower;
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {};
    } config;
    static_assert(sizeof config == 64);
    // A tile that is not used has rows all the same: no row of 64 bytes is no shape.
    const auto first = static_cast<uint8_t>(upper), second = static_cast<uint8_t>(lower > 0 ? lower : 1);
    const uint8_t rows[8] = {first, first, second, second, first, second, 16, 16};
    std::memcpy(config.rows, rows, sizeof rows);
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }

  template <int kTile>
  static void zero() {
    __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  static void load(const void* from, int64_t bytes) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(bytes), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void store(void* to, int64_t bytes) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(bytes), "i"(kTile) : "memory");
  }
  template <int kSum, int kA, int kB>
  static void multiply_add() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
  }

 private:
  static inline thread_local int64_t upper_ = -1, lower_ = -1;
};

}  // namespace
}  // namespace millrace::cpu::gemm

#include "backend/cpu/kernels/gemm/tiles.inc"

namespace millrace::cpu::gemm {

const Arithmetic& arithmetic_bf16_amx() {
  static const Arithmetic tiles = by_tiles(Tiles::begin, Tiles::end);
  return tiles;
}

}  // namespace millrace::cpu::gemm
