// Small matrix products as code of their own: registers hold a block of the result, only a right side that
// stays the same is packed, and a call costs nothing. Internal to the provider.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace llvm {
class Module;
}

namespace millrace::codegen {

/// y [m, n] = a · b in f32, b [k, n] and y row-major; a is [m, k], or [k, m] with `transpose_a`. With
/// `panels_packed` b is one panel of columns after the other, each [k, columns of a panel], zeros behind the
/// last: each is read in one go.
/// Code computes blocks of one height, however many there are; the last rows may be a block of another.
/// Buffers: a, b, y. Outer iterations are blocks of the result: blocks of columns, in each so many blocks of
/// rows as `length` says.
struct Product {
  int64_t m = 0, k = 0, n = 0;
  bool transpose_a = false, panels_packed = false;
  int lanes = 16;      // of a vector
  int registers = 32;  // vectors that the CPU holds

  int64_t vectors() const { return (n + lanes - 1) / lanes; }
  /// As many columns as leave registers for a block of rows that is not much higher than wide: 4×3 vectors of
  /// sums on AVX2, 6×4 on AVX-512. Fewer than 12 sums wait for the multiply-add before, and more so beside a
  /// busy SMT sibling (8 reach 55 % of the peak there, 12 85 %).
  int64_t panels() const {
    const int64_t most = registers < 32 ? 3 : 4;
    return (vectors() + most - 1) / most;
  }
  /// Vectors of a panel; the last may have fewer.
  int64_t panel_vectors() const { return (vectors() + panels() - 1) / panels(); }
  int64_t panel_columns() const { return panel_vectors() * lanes; }
  /// Each sum is kept in so many parts (of every so many k, a power of two) that do not wait for each other,
  /// where a row is too short to give enough sums. It depends on the right side alone: a row's result is the
  /// same in every batch that is computed by this code.
  int64_t parts() const { return vectors() > 2 || k < 32 ? 1 : vectors() == 2 ? 2 : 4; }
  /// Rows of a block but the last: as many as accumulators fit beside the operands of one step, blocks being
  /// alike.
  int64_t rows() const;
  int64_t row_blocks() const { return (m + rows() - 1) / rows(); }
  int64_t last_rows() const { return m - (row_blocks() - 1) * rows(); }
  /// A single row's block has two panels, for more sums, or three where these are all.
  int64_t block_vectors() const {
    return panel_vectors() * (m > 1 || panels() == 1 ? 1 : registers < 32 && panels() == 3 ? 3 : 2);
  }
  int64_t block_columns() const { return block_vectors() * lanes; }
  int64_t column_blocks() const { return (vectors() + block_vectors() - 1) / block_vectors(); }
  int64_t outer_count() const { return column_blocks() * row_blocks(); }
  /// Of the code for blocks of so many rows.
  std::string text(int64_t block_rows) const;
};

void emit_product(const Product& product, int64_t block_rows, llvm::Module& module, const std::string& name);

}  // namespace millrace::codegen
