#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/gemm/arithmetic.h"

namespace millrace::cpu::gemm {
namespace {

/// Tiles in memory, which compute what TDPBF16PS does to the bit: of each 16 units the products of even and
/// of odd elements are summed apart and fused, then together, then added; subnormal numbers are zero.
class Tiles {
 public:
  static void shape(int64_t upper, int64_t lower) {
    const int64_t second = lower > 0 ? lower : 1;
    const int64_t rows[8] = {upper, upper, second, second, upper, second, tile_rows, tile_rows};
    std::memcpy(rows_, rows, sizeof rows);
  }

  template <int kTile>
  static void zero() {
    std::memset(tiles_[kTile], 0, sizeof tiles_[kTile]);
  }
  template <int kTile>
  static void load(const void* from, int64_t bytes) {
    for (int64_t r = 0; r < rows_[kTile]; ++r)
      std::memcpy(tiles_[kTile][r], static_cast<const char*>(from) + r * bytes, sizeof tiles_[kTile][r]);
  }
  template <int kTile>
  static void store(void* to, int64_t bytes) {
    for (int64_t r = 0; r < rows_[kTile]; ++r)
      std::memcpy(static_cast<char*>(to) + r * bytes, tiles_[kTile][r], sizeof tiles_[kTile][r]);
  }
  template <int kSum, int kA, int kB>
  static void multiply_add() {
    for (int64_t m = 0; m < rows_[kSum]; ++m) {
      float even[tile_units] = {}, odd[tile_units] = {};
      for (int64_t k = 0; k < tile_units; ++k) {
        const Unit a = tiles_[kA][m][k];
        for (int64_t n = 0; n < tile_units; ++n) {
          const Unit b = tiles_[kB][k][n];
          even[n] = flushed(std::fma(number(a << 16), number(b << 16), even[n]));
          odd[n] = flushed(std::fma(number(a & 0xFFFF0000), number(b & 0xFFFF0000), odd[n]));
        }
      }
      for (int64_t n = 0; n < tile_units; ++n) {
        Unit& sum = tiles_[kSum][m][n];
        sum = std::bit_cast<Unit>(flushed(number(sum) + flushed(even[n] + odd[n])));
      }
    }
  }

 private:
  static float flushed(float x) { return number(std::bit_cast<Unit>(x)); }
  static float number(Unit bits) {
    return std::bit_cast<float>((bits & 0x7F800000) == 0 ? bits & 0x80000000 : bits);
  }
  alignas(64) static inline thread_local Unit tiles_[8][tile_rows][tile_units] = {};
  static inline thread_local int64_t rows_[8] = {};
};

}  // namespace
}  // namespace millrace::cpu::gemm

#include "backend/cpu/kernels/gemm/tiles.inc"

namespace millrace::cpu::gemm {

const Arithmetic& arithmetic_bf16_tiles() {
  static const Arithmetic tiles = by_tiles(nullptr, nullptr);
  return tiles;
}

}  // namespace millrace::cpu::gemm
