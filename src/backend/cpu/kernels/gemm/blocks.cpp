#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/gemm/kernels.h"
#include "backend/cpu/kernels/vectors.h"
#include "base/thread_pool.h"

namespace millrace::cpu::gemm {

namespace {

const Arithmetic* given = nullptr;

constexpr int64_t kLine = 64;  // bytes of the cache

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

namespace {

/// How a result is cut: into so many parts of rows and of columns.
struct Cut {
  int64_t m, n, panel, by_m = 1, by_n = 1;

  int64_t rows() const { return (m + by_m - 1) / by_m; }
  int64_t columns() const { return (n + by_n - 1) / by_n; }
  int64_t panels() const { return (n + panel - 1) / panel; }
  Rectangle rectangle() const {
    const int64_t parts = std::min(by_n, panels());
    return {rows(), (panels() + parts - 1) / parts * panel, panel, panels(), parts};
  }
};

/// Chunks that are worth 20 µs each, up to so many.
int64_t wanted_chunks(int64_t batch, int64_t m, int64_t n, int64_t k, const Arithmetic& arithmetic,
                      int64_t most) {
  const double operations = 2.0 * static_cast<double>(batch * m * k) * static_cast<double>(n);
  return static_cast<int64_t>(
      std::ceil(std::clamp(operations / (arithmetic.unit == 1 ? 2e6 : 4e6), 1.0, static_cast<double>(most))));
}

}  // namespace

Rectangle choose_chunks(int64_t batch, int64_t m, int64_t n, int64_t k, const Arithmetic& arithmetic) {
  const int64_t wanted = wanted_chunks(batch, m, n, k, arithmetic, 16), panel = arithmetic.panel;
  Cut cut{m, n, panel};
  // Some threads would wait for others if parts had very different numbers of panels.
  const auto halves_well = [&] {
    const int64_t parts = 2 * cut.by_n, most = (cut.panels() + parts - 1) / parts;
    return parts <= cut.panels() && 8 * most * parts <= 9 * cut.panels();
  };
  while (cut.columns() > 768) cut.by_n *= 2;
  // Where sums are kept in memory between parts, they and the left side share the second-level cache.
  const int64_t most_rows = k > depth * arithmetic.unit && m > 512 ? 144 : 288;
  while (cut.rows() > most_rows) cut.by_m *= 2;
  while (batch * cut.by_m * cut.by_n < wanted) {
    const int64_t least = 2 * arithmetic.block_rows, rows = cut.rows(), columns = cut.columns();
    if (rows < least && columns < 2 * panel) break;
    const bool can = columns >= 2 * panel, must = rows < least;
    if (must || (can && halves_well() && (columns > 2 * rows || rows < 2 * least)))
      cut.by_n *= 2;
    else
      cut.by_m *= 2;
  }
  return cut.rectangle();
}

Rectangle choose_squares(int64_t batch, int64_t m, int64_t n, int64_t k, const Arithmetic& arithmetic) {
  // A chunk's sums and its left side share the second-level cache, which CPUs with AVX2 alone have half of.
  const int64_t most_rows = arithmetic.panel < block_columns ? 96 : 192, most_columns = 384;
  const int64_t wanted =
      wanted_chunks(batch, m, n, k, arithmetic, std::clamp<int64_t>(4 * available_cpus(), 4, 16));
  Cut cut{m, n, arithmetic.panel};
  while (cut.rows() > most_rows || cut.rows() * cut.columns() > most_rows * most_columns ||
         batch * cut.by_m * cut.by_n < wanted) {
    const bool by_m = cut.rows() >= 2 * arithmetic.block_rows, by_n = cut.columns() >= 2 * arithmetic.panel;
    if (!by_m && !by_n) break;
    (by_n && (!by_m || cut.columns() > 2 * cut.rows()) ? cut.by_n : cut.by_m) *= 2;
  }
  return cut.rectangle();
}

void pack_left_columns(const Arithmetic& arithmetic, const char* const* from, int64_t offset, int64_t count,
                       int64_t rows, Unit* to) {
  // A line of the cache is of several blocks: all take theirs while it is near, and the next ones come.
  const bool whole = arithmetic.packs_by_rows(false);
  const int64_t blocks = arithmetic.blocks_of(rows), some = whole ? count : 16;
  for (int64_t k = 0; k < count; k += some) {
    for (int64_t ahead = k + some; ahead < std::min(k + 2 * some, count); ++ahead)
      for (int64_t byte = 0; byte < rows * arithmetic.bytes; byte += kLine)
        __builtin_prefetch(from[ahead] + offset + byte);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t r = rows * i / blocks;
      arithmetic.pack_left(from + k, offset + r * arithmetic.bytes, std::min(some, count - k),
                           rows * (i + 1) / blocks - r,
                           to + i * arithmetic.left_block + k / arithmetic.unit * arithmetic.left_step);
    }
  }
}

After fetch_left(const Arithmetic& arithmetic, const Rows& left, int64_t rows, int64_t panel,
                 int64_t panels) {
  const int64_t lines = arithmetic.unit * ((rows * arithmetic.bytes + kLine - 1) / kLine + 1),
                each = std::max<int64_t>(arithmetic.blocks_of(rows) - arithmetic.unit, 1),
                first = panels - (lines + each - 1) / each;
  if (panel < first) return {};
  return {.left = left, .first_line = (panel - first) * each, .lines = lines};
}

namespace {

/// What the i-th of blocks above each other fetches, a part of it with each unit.
Ahead ahead_of(const After& next, const Arithmetic& arithmetic, int64_t units, int64_t i, int64_t step) {
  if (next.packed) return {reinterpret_cast<const char*>(next.packed) + i * units * step, step};
  // A unit is as many rows, which as many blocks fetch.
  const int64_t unit = arithmetic.unit, line = next.first_line + i - unit;
  if (i < unit && next.right.from) return {next.right.from + i * next.right.step, unit * next.right.step};
  if (i < unit || line >= next.lines) return {};
  return {next.left.from + line % unit * next.left.step + line / unit * kLine, unit * next.left.step};
}

}  // namespace

void multiply_blocks(const Arithmetic& arithmetic, const Left& left, const Unit* right, int64_t units,
                     const Sums& sums, int64_t columns, const After& after, const Finish* finish) {
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
    const After next = n + panel < columns ? After{.packed = right + (n + panel) * depth} : after;
    block.b = right + n * depth;
    block.columns = std::min(panel, columns - n);
    if (finish && finish->bias) end.bias = finish->bias + n;
    for (int64_t i = 0, m = 0; i < blocks; ++i, m += block.rows) {
      block.a = left.blocks + (left.step > 0 ? m * left.step : i * arithmetic.left_block);
      block.rows = rows * (i + 1) / blocks - m;
      block.c = sums.c + m * sums.row + n;
      block.ahead = ahead_of(next, arithmetic, block.units, i, step);
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
