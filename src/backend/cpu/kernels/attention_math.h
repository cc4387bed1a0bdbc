// The arithmetic of attention's kernels on tiles in f32, once for each kind of CPU.
#pragma once

#include <cstdint>
#include <span>

namespace millrace::cpu {

/// Tiles hold keys or width in rows and queries in columns: a row is `attention_block` floats apart from the next.
/// Pointers to tiles are 64-byte aligned; `columns` is a multiple of `lanes`, at most attention_block.
struct AttentionMath {
  const char* name;
  int lanes;
  /// c [rows × columns] = a · b, or += with `add`. a(i, k) stands at a[i · a_row + k · a_column]; b is [depth × columns];
  /// rows of b and c are b_row and c_row floats apart. Here columns may be any multiple of `lanes`.
  void (*multiply)(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row, float* c,
                   int64_t c_row, int64_t rows, int64_t columns, int64_t depth, bool add);
  /// Turns scores into exp(score − highest) and brings `highest` and `sum` of each column up to date; `factor` says by
  /// what earlier exponentials must be multiplied. Returns whether any factor differs from 1.
  bool (*softmax)(float* scores, int64_t rows, int64_t columns, float* highest, float* sum, float* factor);
  /// Multiplies every row by `factor`, one a column.
  void (*scale)(float* tile, int64_t rows, int64_t columns, const float* factor);
  /// Turns scores into weights exp(score − log_sum), and `arrived` into weights · (arrived − inner).
  void (*score_gradient)(float* scores, float* arrived, int64_t rows, int64_t columns, const float* log_sum,
                         const float* inner);
  /// Row i keeps its columns from first + i on; those before become −∞.
  void (*hide)(float* scores, int64_t rows, int64_t columns, int64_t first);
  /// scores += bias.
  void (*add)(float* scores, const float* bias, int64_t rows, int64_t columns);
  /// to[j · to_row + i] = from[i · from_row + j] · factor.
  void (*transpose)(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                    int64_t to_row, float factor);
};

/// Queries, and keys, of a tile.
constexpr int64_t attention_block = 64;

/// Those that this CPU can run, the fastest first; there is always one.
std::span<const AttentionMath* const> attention_maths();

// One file each, compiled for that CPU.
const AttentionMath& attention_math_avx512();
const AttentionMath& attention_math_avx2();
const AttentionMath& attention_math_baseline();

}  // namespace millrace::cpu
