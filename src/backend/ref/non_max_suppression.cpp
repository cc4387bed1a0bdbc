#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "backend/ref/registry.h"

using namespace millrace;

/// In f32, as any back end computes it: whether a box is kept hangs on the last digit of a quotient.
static float overlap(const Array& corners, int64_t side, int64_t a, int64_t b) {
  const auto corner = [&](int64_t k, int64_t box) { return static_cast<float>(corners.at(k * side + box)); };
  const auto length = [&](int64_t low, int64_t high) {
    return std::max(0.0F,
                    std::min(corner(high, a), corner(high, b)) - std::max(corner(low, a), corner(low, b)));
  };
  const auto area = [&](int64_t box) {
    return (corner(2, box) - corner(0, box)) * (corner(3, box) - corner(1, box));
  };
  const float both = length(0, 2) * length(1, 3), either = area(a) + area(b) - both;
  return either > 0 ? both / either : 0;
}

MILLRACE_REF(non_max_suppression) {
  const Array &corners = operands[0], &scores = operands[1], &candidates = operands[2];
  const Shape& shape = scores.shape();
  const int64_t classes = shape[1].size(), boxes = shape[2].size(), groups = shape[0].size() * classes;
  const int64_t most = std::min(operands[4].int_at(0), node.attributes.shape("most")[0].size());
  const auto share = static_cast<float>(operands[3].at(0));
  Array rows = Array::full(node.types[0].dtype, node.types[0].shape, 0), many(node.types[1]);
  int64_t count = 0;
  std::vector<int64_t> order(static_cast<size_t>(boxes));
  for (int64_t g = 0; g < groups; ++g) {
    const auto score = [&](int64_t box) {
      const double x = scores.at(g * boxes + box);
      return std::isnan(x) ? -INFINITY : x;
    };
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score(a) > score(b); });
    std::vector<int64_t> kept;
    for (const int64_t box : order) {
      if (std::ssize(kept) >= most || candidates.int_at(g * boxes + box) == 0) continue;
      const int64_t first = g / classes * boxes;
      if (std::any_of(kept.begin(), kept.end(), [&](int64_t better) {
            return overlap(corners, scores.shape()[0].size() * boxes, first + better, first + box) > share;
          }))
        continue;
      kept.push_back(box);
      int64_t column = 0;
      for (const int64_t x : {g / classes, g % classes, box}) rows.set_int(3 * count + column++, x);
      ++count;
    }
  }
  many.set_int(0, count);
  return {rows, many};
}
