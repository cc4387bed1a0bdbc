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
  for (int64_t i = 0; i < out.count(); ++i) {
    const int64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
    const int64_t a_at = matrix * rows * inner, b_at = matrix * inner * columns;
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k)
      sum += a[a_at + (transpose_a ? k * rows + row : row * inner + k)] *
             b[b_at + (transpose_b ? column * inner + k : k * columns + column)];
    out.set(i, sum);
  }
  return {out};
}
