#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/vectors.h"

namespace millrace::cpu::gemm {

namespace {

const Arithmetic* given = nullptr;

}  // namespace

const Arithmetic& arithmetic_of(DType dtype) { return dtype == f32 ? arithmetic_f32() : arithmetic_bf16(); }

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
  const int64_t panels = (n + block_columns - 1) / block_columns;
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
    if (rows() < least && columns() < 2 * block_columns) break;
    const bool can = columns() >= 2 * block_columns, must = rows() < least;
    if (must || (can && halves_well() && (columns() > 2 * rows() || rows() < 2 * least)))
      by_n *= 2;
    else
      by_m *= 2;
  }
  const int64_t parts = std::min(by_n, panels);
  return {rows(), (panels + parts - 1) / parts * block_columns, panels, parts};
}

void multiply_blocks(const Arithmetic& arithmetic, const Left& left, const Unit* right, int64_t units,
                     const Sums& sums, int64_t columns, const Unit* after, const Finish* finish) {
  const int64_t rows = left.rows, blocks = arithmetic.blocks_of(rows), step = ahead_step(blocks);
  if (arithmetic.begin) arithmetic.begin();
  for (int64_t n = 0; n < columns; n += block_columns) {
    const Unit* const next = n + block_columns < columns ? right + (n + block_columns) * depth : after;
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t m = rows * i / blocks;
      Block block{.a = left.blocks + (left.step > 0 ? m * left.step : i * arithmetic.left_block),
                  .by_rows = left.by_rows,
                  .step = left.step > 0 ? left.step : row_step,
                  .b = right + n * depth,
                  .units = units / left.segments,
                  .rows = rows * (i + 1) / blocks - m,
                  .columns = std::min(block_columns, columns - n),
                  .c = sums.c + m * sums.row + n,
                  .ldc = sums.row,
                  .add = sums.add,
                  .segments = left.segments,
                  .segment_step = left.segment_step};
      if (next) block.ahead = {reinterpret_cast<const char*>(next) + i * block.units * step, step};
      Finish end;
      if (finish) {
        const int64_t offset = m * finish->step + n * arithmetic.bytes;
        end = *finish;
        end.to = static_cast<char*>(finish->to) + offset;
        if (finish->bias) end.bias = finish->bias + n;
        if (finish->added) end.added = static_cast<const char*>(finish->added) + offset;
        block.finish = &end;
      }
      arithmetic.multiply(block);
    }
  }
  if (arithmetic.end) arithmetic.end();
}

}  // namespace millrace::cpu::gemm
