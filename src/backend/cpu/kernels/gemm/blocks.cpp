#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/vectors.h"

namespace millrace::cpu::gemm {

namespace {

const Arithmetic* given = nullptr;

}  // namespace

const Arithmetic& product_arithmetic(DType dtype) {
  if (given && given->bytes == dtype.bytes()) return *given;
  if (dtype == f32) return has_avx512() ? arithmetic_f32() : arithmetic_f32_avx2();
  return tiles_work() ? arithmetic_bf16_amx() : arithmetic_bf16();
}

void set_product_arithmetic(const Arithmetic* arithmetic) { given = arithmetic; }

bool may_lie(int64_t elements, const Arithmetic& arithmetic) {
  return elements % arithmetic.unit == 0 && elements * arithmetic.bytes % 2048 != 0;
}

Rectangle choose_chunks(int64_t batch, int64_t m, int64_t n, int64_t k, const Arithmetic& arithmetic) {
  const double operations = 2.0 * static_cast<double>(batch * m * k) * static_cast<double>(n);
  const auto wanted =
      static_cast<int64_t>(std::ceil(std::clamp(operations / (arithmetic.unit == 1 ? 2e6 : 4e6), 1.0, 16.0)));
  int64_t by_m = 1, by_n = 1;
  const auto rows = [&] { return (m + by_m - 1) / by_m; };
  const auto columns = [&] { return (n + by_n - 1) / by_n; };
  const int64_t panel = arithmetic.panel, panels = (n + panel - 1) / panel;
  // Some threads would wait for others if parts had very different numbers of panels.
  const auto halves_well = [&] {
    const int64_t parts = 2 * by_n, most = (panels + parts - 1) / parts;
    return parts <= panels && 8 * most * parts <= 9 * panels;
  };
  while (columns() > 768) by_n *= 2;
  // Where sums are kept in memory between parts, they and the left side share the second-level cache.
  const int64_t most_rows = k > depth * arithmetic.unit && m > 512 ? 144 : 288;
  while (rows() > most_rows) by_m *= 2;
  while (batch * by_m * by_n < wanted) {
    const int64_t least = 2 * arithmetic.block_rows;
    if (rows() < least && columns() < 2 * panel) break;
    const bool can = columns() >= 2 * panel, must = rows() < least;
    if (must || (can && halves_well() && (columns() > 2 * rows() || rows() < 2 * least)))
      by_n *= 2;
    else
      by_m *= 2;
  }
  const int64_t parts = std::min(by_n, panels);
  return {rows(), (panels + parts - 1) / parts * panel, panel, panels, parts};
}

void multiply_blocks(const Arithmetic& arithmetic, const Left& left, const Unit* right, int64_t units,
                     const Sums& sums, int64_t columns, const Unit* after, const Finish* finish) {
  const int64_t rows = left.rows, blocks = arithmetic.blocks_of(rows), panel = arithmetic.panel,
                step = ahead_step(blocks, panel);
  if (arithmetic.begin) arithmetic.begin();
  // What a block needs is written where it changes: blocks may be as short as 1,500 cycles.
  Finish end;
  if (finish) end = *finish;
  Block block{.a = nullptr,
              .by_rows = left.by_rows,
              .step = left.step > 0 ? left.step : row_step,
              .b = nullptr,
              .units = units / left.segments,
              .rows = 0,
              .columns = 0,
              .c = nullptr,
              .ldc = sums.row,
              .add = sums.add,
              .finish = finish ? &end : nullptr,
              .segments = left.segments,
              .segment_step = left.segment_step};
  for (int64_t n = 0; n < columns; n += panel) {
    const Unit* const next = n + panel < columns ? right + (n + panel) * depth : after;
    block.b = right + n * depth;
    block.columns = std::min(panel, columns - n);
    if (finish && finish->bias) end.bias = finish->bias + n;
    for (int64_t i = 0, m = 0; i < blocks; ++i, m += block.rows) {
      block.a = left.blocks + (left.step > 0 ? m * left.step : i * arithmetic.left_block);
      block.rows = rows * (i + 1) / blocks - m;
      block.c = sums.c + m * sums.row + n;
      block.ahead =
          next ? Ahead{reinterpret_cast<const char*>(next) + i * block.units * step, step} : Ahead{};
      if (finish) {
        const int64_t offset = m * finish->step + n * arithmetic.bytes;
        end.to = static_cast<char*>(finish->to) + offset;
        if (finish->added) end.added = static_cast<const char*>(finish->added) + offset;
      }
      arithmetic.multiply(block);
    }
  }
  if (arithmetic.end) arithmetic.end();
}

}  // namespace millrace::cpu::gemm
