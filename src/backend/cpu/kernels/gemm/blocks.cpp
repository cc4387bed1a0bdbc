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

Rectangle choose_chunks(int64_t batch, int64_t m, int64_t n, int64_t k, const Arithmetic& arithmetic) {
  const double operations = 2.0 * static_cast<double>(batch * m * k) * static_cast<double>(n);
  const auto wanted =
      static_cast<int64_t>(std::clamp(operations / (arithmetic.unit == 1 ? 3e6 : 5e6), 1.0, 16.0));
  int64_t by_m = 1, by_n = 1;
  const auto rows = [&] { return (m + by_m - 1) / by_m; };
  const auto columns = [&] { return (n + by_n - 1) / by_n; };
  while (columns() > 768) by_n *= 2;
  while (rows() > 288) by_m *= 2;
  while (batch * by_m * by_n < wanted) {
    if (rows() < 2 * block_rows && columns() < 2 * block_columns) break;
    if (columns() >= 2 * block_columns && (columns() > 2 * rows() || rows() < 4 * block_rows))
      by_n *= 2;
    else
      by_m *= 2;
  }
  const int64_t panels = (n + block_columns - 1) / block_columns, parts = std::min(by_n, panels);
  return {rows(), (panels + parts - 1) / parts * block_columns, panels, parts};
}

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
