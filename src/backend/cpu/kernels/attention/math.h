// The arithmetic of attention's kernels on tiles, in f32 once for each kind of CPU, and in bf16 with sums in
// f32.
#pragma once

#include <cstdint>
#include <span>

namespace millrace::cpu {

/// Tiles hold keys or width in rows and queries in columns: a row is `attention_block` floats apart from the
/// next. Pointers to tiles are 64-byte aligned; `columns` is a multiple of `lanes`, at most attention_block.
struct AttentionMath {
  const char* name;
  int lanes;
  /// c [rows × columns] = factor · a · b, or c + a · b with `add` (and factor 1). a(i, k) stands at a[i ·
  /// a_row + k · a_column]; b is [depth × columns]; rows of b and c are b_row and c_row floats apart. Here
  /// columns may be any multiple of `lanes`.
  void (*multiply)(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row, float* c,
                   int64_t c_row, int64_t rows, int64_t columns, int64_t depth, float factor, bool add);
  /// Turns scores into exp(score − highest) and brings `highest` and `sum` of each column up to date;
  /// `factor` says by what earlier exponentials must be multiplied. Returns whether any factor differs
  /// from 1.
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

/// The same in bf16. What is multiplied are pairs: 32 bits with two bf16 that are neighbours along the sum,
/// the first in the low half; a missing partner of the last is zero. Tiles of scores are as in AttentionMath,
/// rows of pairs attention_block apart.
struct AttentionBf16Math {
  const char* name;
  /// c [rows × columns] = factor · a · b, or c + a · b with `add` (and factor 1). Row i of a begins at a + i
  /// · a_row, its pairs are a_step apart, both in bf16 and even; one of the two is 2. b is [pairs × columns],
  /// rows of it and of c are b_row and c_row elements apart.
  void (*multiply)(const uint16_t* a, int64_t a_row, int64_t a_step, const uint32_t* b, int64_t b_row,
                   float* c, int64_t c_row, int64_t rows, int64_t columns, int64_t pairs, float factor,
                   bool add);
  /// AttentionMath::softmax, with the exponentials as pairs of neighbouring rows.
  bool (*softmax)(const float* scores, uint32_t* weights, int64_t rows, int64_t columns, float* highest,
                  float* sum, float* factor);
  /// weights = exp(score − log_sum) and gradients = weights · (arrived − inner) by rows, and the gradients as
  /// pairs of neighbouring rows.
  void (*score_gradient)(const float* scores, const float* arrived, int64_t rows, int64_t columns,
                         const float* log_sum, const float* inner, uint16_t* weights, uint16_t* gradients,
                         uint32_t* gradient_pairs);
  /// to[i · to_row + j]: column j of rows 2i and 2i + 1. Columns from `columns` to the next multiple of 16
  /// become zero.
  void (*pair_rows)(const uint16_t* from, int64_t from_row, int64_t rows, int64_t columns, uint32_t* to,
                    int64_t to_row);
  /// to[j · attention_block + i]: columns 2j and 2j + 1 (of an even number) of row i of at most
  /// attention_block, then zeros.
  void (*pair_columns)(const uint16_t* from, int64_t from_row, int64_t rows, int64_t columns, uint32_t* to);
  /// Rounds `count` numbers times `factor`.
  void (*round)(const float* from, uint16_t* to, int64_t count, float factor);

  /// Come before and behind products that a thread computes one after the other; null: nothing is to be done.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
};

/// Queries, and keys, of a tile.
constexpr int64_t attention_block = 64;

/// Those that this CPU can run, the fastest first; there is always one.
std::span<const AttentionMath* const> attention_maths();

/// Null where the CPU has no instructions for it.
const AttentionBf16Math* attention_bf16_math();

// One file each, compiled for that CPU.
const AttentionMath& attention_math_avx512();
const AttentionMath& attention_math_avx2();
const AttentionMath& attention_math_baseline();
const AttentionBf16Math& attention_math_bf16_avx512();
/// Products by tiles. The one may be called where gemm::tiles_work() only; the other computes the same bits
/// without them, for tests.
const AttentionBf16Math& attention_math_bf16_amx();
const AttentionBf16Math& attention_math_bf16_tiles();

}  // namespace millrace::cpu
