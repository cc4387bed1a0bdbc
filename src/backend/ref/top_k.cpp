#include <algorithm>
#include <numeric>
#include <vector>

#include "backend/ref/registry.h"

using namespace millrace;

MILLRACE_REF(top_k) {
  const Array& x = operands[0];
  Array values(node.types[0]), positions(node.types[1]);
  const int64_t size = x.shape().back().size(), k = node.types[0].shape.back().size();
  const int64_t rows = size > 0 ? x.count() / size : 0;
  std::vector<int64_t> order(static_cast<size_t>(size));
  for (int64_t row = 0; row < rows; ++row) {
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return x.at(row * size + a) > x.at(row * size + b); });
    for (int64_t i = 0; i < k; ++i) {
      values.set(row * k + i, x.at(row * size + order[static_cast<size_t>(i)]));
      positions.set_int(row * k + i, order[static_cast<size_t>(i)]);
    }
  }
  return {values, positions};
}
