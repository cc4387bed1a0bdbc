// Small matrix products as code of their own: registers hold a block of the result, nothing is packed, and a
// call costs nothing. Internal to the provider.
#pragma once

#include <cstdint>
#include <string>

namespace llvm {
class Module;
}

namespace millrace::codegen {

/// y [m, n] = a · b in f32, b [k, n] and y row-major; a is [m, k], or [k, m] with `transpose_a`. With
/// `panels_packed` b is one panel of columns after the other, each [k, columns of a panel], zeros behind the
/// last: each is read in one go.
/// Buffers: a, b, y. Outer iterations are blocks of the result: panels of columns, in each blocks of rows.
struct Product {
  int64_t m = 0, k = 0, n = 0;
  bool transpose_a = false, panels_packed = false;
  int lanes = 16;      // of a vector
  int registers = 32;  // vectors that the CPU holds

  int64_t vectors() const { return (n + lanes - 1) / lanes; }
  int64_t panels() const { return (vectors() + 3) / 4; }
  /// Vectors of a panel; the last may have fewer.
  int64_t panel_vectors() const { return (vectors() + panels() - 1) / panels(); }
  int64_t panel_columns() const { return panel_vectors() * lanes; }
  /// Rows of a block: as many as accumulators fit beside the operands of one step.
  int64_t rows() const;
  int64_t row_blocks() const { return (m + rows() - 1) / rows(); }
  int64_t outer_count() const { return panels() * row_blocks(); }
  std::string text() const;
};

void emit_product(const Product& product, llvm::Module& module, const std::string& name);

}  // namespace millrace::codegen
