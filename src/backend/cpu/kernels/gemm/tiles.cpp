#include <cstring>
#include <random>
#include <vector>

#include "backend/cpu/kernels/gemm/arithmetic.h"
#include "backend/cpu/kernels/vectors.h"
#include "base/cpu.h"

namespace millrace::cpu::gemm {
namespace {

/// A block of every kind: odd numbers of rows, columns and units, several segments.
bool computes_right() {
  constexpr int64_t rows = 29, columns = 27, units = 37, segments = 2;
  std::mt19937 random(1);
  const auto draw = [&] {
    // Two bf16 between 2^-7 and 2 in size.
    const auto half = [&] { return (random() & 0x83FFU) | 0x3C00U; };
    return static_cast<Unit>(half() << 16 | half());
  };
  std::vector<Unit> a(static_cast<size_t>(rows * row_step)), right(segments * units * block_columns + 16);
  for (Unit& unit : a) unit = draw();
  for (Unit& unit : right) unit = draw();
  Unit* const b = right.data() + (64 - reinterpret_cast<uintptr_t>(right.data()) % 64) % 64 / sizeof(Unit);
  std::vector<float> sums[2];
  const Arithmetic* const both[] = {&arithmetic_bf16_amx(), &arithmetic_bf16_tiles()};
  for (int i = 0; i < 2; ++i) {
    sums[i].assign(static_cast<size_t>(rows * columns), 0);
    if (both[i]->begin) both[i]->begin();
    both[i]->multiply({.a = a.data(),
                       .by_rows = true,
                       .step = row_step,
                       .b = b,
                       .units = units,
                       .rows = rows,
                       .columns = columns,
                       .c = sums[i].data(),
                       .ldc = columns,
                       .add = false,
                       .segments = segments,
                       .segment_step = 80});
    if (both[i]->end) both[i]->end();
  }
  return std::memcmp(sums[0].data(), sums[1].data(), sums[0].size() * sizeof(float)) == 0;
}

}  // namespace

bool tiles_work() {
  static const bool work = has_avx512_bf16() && tiles_allowed() && cpu_has("amx_bf16") && computes_right();
  return work;
}

}  // namespace millrace::cpu::gemm
