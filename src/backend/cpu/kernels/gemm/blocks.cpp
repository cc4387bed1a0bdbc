#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/gemm/kernels.h"

namespace millrace::cpu::gemm {

void copy_rows(const Arithmetic& arithmetic, const void* from, int64_t stride, int64_t rows, int64_t count,
               Unit* to) {
  const auto bytes = static_cast<size_t>(count * arithmetic.bytes);
  const int64_t units = (count + arithmetic.unit - 1) / arithmetic.unit;
  for (int64_t r = 0; r < rows; ++r) {
    Unit* const row = to + r * row_step;
    row[units - 1] = 0;
    std::memcpy(row, static_cast<const char*>(from) + r * stride, bytes);
  }
}

const Arithmetic& arithmetic_of(DType dtype) { return dtype == f32 ? arithmetic_f32() : arithmetic_bf16(); }

void multiply_blocks(const Arithmetic& arithmetic, const Unit* left, bool by_rows, const Unit* right,
                     int64_t units, float* c, int64_t ldc, int64_t rows, int64_t columns, bool add) {
  const int64_t blocks = blocks_of(rows);
  for (int64_t n = 0; n < columns; n += block_columns)
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t m = rows * i / blocks;
      arithmetic.multiply(left + i * left_block, by_rows, right + n * depth, units, c + m * ldc + n, ldc,
                          rows * (i + 1) / blocks - m, std::min(block_columns, columns - n), add);
    }
}

}  // namespace millrace::cpu::gemm
