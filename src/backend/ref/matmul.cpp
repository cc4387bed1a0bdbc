#include <algorithm>
#include <vector>

#include "backend/ref/registry.h"

using namespace millrace;

MILLRACE_REF(matmul) {
  const bool transpose_a = node.attributes.flag("transpose_a"),
             transpose_b = node.attributes.flag("transpose_b");
  Array out(node.types[0]);
  const std::vector<int64_t> sizes = out.shape().sizes(), a_sizes = operands[0].shape().sizes();
  const int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  const int64_t inner = a_sizes[a_sizes.size() - (transpose_a ? 2 : 1)];
  const std::vector<double> a = operands[0].to_doubles(), b = operands[1].to_doubles();
  const int64_t a_row = transpose_a ? 1 : inner, a_k = transpose_a ? rows : 1;
  const int64_t b_k = transpose_b ? 1 : columns, b_column = transpose_b ? inner : 1;
  std::vector<double> sums(static_cast<size_t>(columns));
  for (int64_t at = 0; at < out.count(); at += columns) {
    const int64_t matrix = at / (rows * columns), row = at / columns % rows;
    const double* const from_a = a.data() + matrix * rows * inner + row * a_row;
    const double* const from_b = b.data() + matrix * inner * columns;
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t k = 0; k < inner; ++k) {
      const double factor = from_a[k * a_k];
      for (int64_t column = 0; column < columns; ++column)
        sums[column] += factor * from_b[k * b_k + column * b_column];
    }
    for (int64_t column = 0; column < columns; ++column) out.set(at + column, sums[column]);
  }
  return {out};
}
