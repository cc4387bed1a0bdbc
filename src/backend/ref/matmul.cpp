#include <utility>
#include <vector>

#include "backend/ref/registry.h"

using namespace millrace;

namespace {

/// Each matrix of so many rows and columns becomes its transpose.
void turn(std::vector<double>& matrices, int64_t rows, int64_t columns) {
  std::vector<double> turned(matrices.size());
  for (int64_t at = 0; at < std::ssize(matrices); at += rows * columns)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        turned[at + column * rows + row] = matrices[at + row * columns + column];
  matrices = std::move(turned);
}

}  // namespace

MILLRACE_REF(matmul) {
  const bool transpose_a = node.attributes.flag("transpose_a"),
             transpose_b = node.attributes.flag("transpose_b");
  const std::vector<int64_t> sizes = node.types[0].shape.sizes(), a_sizes = operands[0].shape().sizes();
  const int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  const int64_t inner = a_sizes[a_sizes.size() - (transpose_a ? 2 : 1)];
  const std::vector<double> a = operands[0].to_doubles();
  std::vector<double> b = operands[1].to_doubles();
  if (transpose_b) turn(b, columns, inner);
  const int64_t a_row = transpose_a ? 1 : inner, a_k = transpose_a ? rows : 1;
  std::vector<double> out(static_cast<size_t>(node.types[0].shape.count()));
  for (int64_t at = 0; at < std::ssize(out); at += columns) {
    const int64_t matrix = at / (rows * columns), row = at / columns % rows;
    const double* const from_a = a.data() + matrix * rows * inner + row * a_row;
    double* const sums = out.data() + at;
    for (int64_t k = 0; k < inner; ++k) {
      const double factor = from_a[k * a_k], *const from_b = b.data() + (matrix * inner + k) * columns;
      for (int64_t column = 0; column < columns; ++column) sums[column] += factor * from_b[column];
    }
  }
  return {Array::of(node.types[0].dtype, node.types[0].shape, out)};
}
