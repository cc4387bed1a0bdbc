// Products of packed matrices on AVX-512, in f32 and in bf16 with sums in f32, by the tiles of AMX, and in
// f32 on AVX2: packing, and blocks of the result that stay in registers while they sum (Goto and van de
// Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008). Everything counts in units of 32 bits
// along the sum: one float, two neighbouring bf16, or four int8 once there are products of them. What says
// nothing else needs AVX-512 (and its BF16 instructions, for bf16).
#pragma once

#include <cstdint>
#include <limits>

namespace millrace::cpu::gemm {

using Unit = uint32_t;

constexpr int64_t block_rows = 14;     // of the result, in registers
constexpr int64_t block_columns = 32;  // two vectors
constexpr int64_t depth = 256;         // units of the sum that are packed at a time
/// Units between rows of a left side packed by rows: not a power of two, so that rows fall into different
/// cache sets.
constexpr int64_t row_step = depth + 16;
/// Units between steps of the sum of a left side packed by columns; on AVX2 it is the six of a block.
constexpr int64_t column_step = 16;
/// Units of a block's left side, packed either way.
constexpr int64_t left_block = depth * column_step;
static_assert(left_block >= block_rows * row_step);
/// The same of blocks by tiles: two above each other, packed by rows.
constexpr int64_t tile_rows = 16, tile_units = 16;
constexpr int64_t tiles_left_block = 2 * tile_rows * row_step;

constexpr int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

/// Rows go by blocks as equal as can be: block i has the rows from rows·i/blocks on.
constexpr int64_t blocks_of(int64_t rows, int64_t most = block_rows) { return (rows + most - 1) / most; }

/// Memory that is wanted soon: with each unit of a block's sum `step` bytes more of it are fetched.
struct Ahead {
  const void* from = nullptr;
  int64_t step = 0;
};
/// Of a panel whose left neighbour is multiplied by so many blocks of rows.
constexpr int64_t ahead_step(int64_t blocks, int64_t panel) {
  constexpr int64_t cache_line = 64;
  const int64_t step = (panel * int64_t{sizeof(Unit)} + blocks - 1) / blocks;
  return step < cache_line ? step : cache_line;
}

/// Where sums become results: bias and `added` are added unless they are null, then the limits hold, and
/// elements are stored. NaN stays NaN.
struct Finish {
  void* to = nullptr;
  int64_t step = 0;  // bytes between rows of `to` and of `added`
  const float* bias = nullptr;
  const void* added = nullptr;  // elements
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

/// [rows ≤ 14, or 32 by tiles, or 6 on AVX2; columns ≤ 32, or 16 on AVX2] = a · b over `units` of the sum,
/// and as many of each further segment of the left side, added to what c holds when `add`. Stored in c, or
/// finished.
struct Block {
  const Unit* a;  // [row][step] when `by_rows`, else [unit][column_step]
  bool by_rows;
  int64_t step = row_step;  // or that of rows that were not packed
  const Unit* b;            // [unit][32], or [unit][16] on AVX2
  int64_t units, rows, columns;
  float* c;
  int64_t ldc;  // floats between rows of c
  bool add;
  Ahead ahead = {};
  const Finish* finish = nullptr;
  int64_t segments = 1, segment_step = 0;  // of a by rows: units from one to the next
};

/// How a left side is packed: its rows stay rows and its columns columns, or all become one of them.
enum class LeftSide { as_it_lies, rows, columns };

/// What differs between f32 and bf16, and between vectors and tiles.
struct Arithmetic {
  int64_t unit;        // elements: 1 or 2
  int64_t bytes;       // of an element
  int64_t block_rows;  // at most
  int64_t panel;       // columns of a block, at most: a packed right side's rows are so long
  int64_t left_block;  // units from the packed left side of one block to the next
  LeftSide left_side;
  int64_t left_step;  // units between steps of the sum of a left side packed by columns
  double rate;        // operations in a nanosecond, of one core: half of what it can do

  void (*multiply)(const Block& block);

  /// The left side of a block from `count` columns of it, `rows` elements each at from[k] + offset bytes: by
  /// rows where all are, or to[unit][left_step].
  void (*pack_left)(const char* const* from, int64_t offset, int64_t count, int64_t rows, Unit* to);

  /// The same from `rows` rows, `count` elements along the sum at from[row] + offset bytes each: by columns
  /// where all are, or to[row][row_step], where a missing partner of the last is zero.
  void (*pack_left_rows)(const char* const* from, int64_t offset, int64_t rows, int64_t count, Unit* to);

  /// to[unit][width ≤ 32, then zeros, `step` = 16 or 32] from `count` rows of elements, `width` of them at
  /// from[k] + offset bytes; a missing partner of the last is zero.
  void (*pack_rows)(const char* const* from, int64_t offset, int64_t count, int64_t width, Unit* to,
                    int64_t step);

  /// to[unit][panel] from `columns` ≤ panel columns (zeros behind them), each `count` elements along the sum,
  /// `stride` elements between columns.
  void (*pack_columns)(const void* from, int64_t stride, int64_t columns, int64_t count, Unit* to);

  /// to[pixel][channels, zeros up to a whole unit] from `channels` ≤ 4 rows of `count` elements each; up to
  /// 64 units behind them are overwritten.
  void (*interleave)(const char* const* from, int64_t channels, int64_t count, Unit* to);

  /// Rounds `count` sums to elements.
  void (*round)(const float* from, void* to, int64_t count);

  /// Vectors of `lanes` elements out of as many others (null: elements move one by one): lane j of vector v
  /// of `to` is lane index[v][j] of that vector s of `from` for which bit j of mask[v][s] is set. Vectors lie
  /// from_step and to_step elements apart.
  void (*shuffle)(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t vectors,
                  const uint16_t* index, const uint32_t* mask);
  int64_t lanes() const { return 64 / bytes; }
  bool packs_by_rows(bool lies_by_rows) const {
    return left_side == LeftSide::rows || (left_side == LeftSide::as_it_lies && lies_by_rows);
  }
  int64_t blocks_of(int64_t rows) const { return gemm::blocks_of(rows, block_rows); }

  /// Come before and behind blocks that a thread multiplies one after the other; null: nothing is to be done.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
};

const Arithmetic& arithmetic_f32();
const Arithmetic& arithmetic_bf16();
/// Without `shuffle`.
const Arithmetic& arithmetic_f32_avx2();
/// By tiles. The one may be called where tiles_work() only; the other computes the same bits without them,
/// for tests.
const Arithmetic& arithmetic_bf16_amx();
const Arithmetic& arithmetic_bf16_tiles();

/// Whether this CPU has AMX's tiles of bf16, the system lets this process use them, and they compute what
/// their software form does.
bool tiles_work();

}  // namespace millrace::cpu::gemm
