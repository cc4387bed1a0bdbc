#include <algorithm>
#include <cmath>

#include "backend/ref/registry.h"

using namespace millrace;

namespace {

/// One row or column of `in` values, `step` apart, to `out` values.
void line(const uint8_t* from, int64_t in, int64_t from_step, uint8_t* to, int64_t out, int64_t to_step) {
  const double scale = static_cast<double>(in) / static_cast<double>(out), reach = std::max(scale, 1.0);
  for (int64_t i = 0; i < out; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<int64_t>(static_cast<int64_t>(centre - reach + 0.5), 0);
    const auto last = std::min<int64_t>(static_cast<int64_t>(centre + reach + 0.5), in);
    const auto weight = [&](int64_t k) {
      return std::max(0.0, 1.0 - std::abs((static_cast<double>(k) - centre + 0.5) * (1.0 / reach)));
    };
    double all = 0;
    for (int64_t k = first; k < last; ++k) all += weight(k);
    int64_t sum = 1 << 21;
    for (int64_t k = first; k < last; ++k)
      sum += static_cast<int64_t>(0.5 + weight(k) / all * (1 << 22)) * from[k * from_step];
    to[i * to_step] = static_cast<uint8_t>(std::clamp<int64_t>(sum >> 22, 0, 255));
  }
}

}  // namespace

MILLRACE_REF(resize) {
  const Array& x = operands[0];
  Array out(node.types[0]);
  const Shape &from = x.shape(), &to = out.shape();
  const int64_t height = from[from.rank() - 2].size(), width = from[from.rank() - 1].size(),
                new_height = to[to.rank() - 2].size(), new_width = to[to.rank() - 1].size();
  std::vector<uint8_t> rows(static_cast<size_t>(height * new_width));
  const uint8_t* in = x.as<const uint8_t>().data();
  uint8_t* result = out.as<uint8_t>().data();
  for (int64_t plane = 0; plane < x.count() / (height * width); ++plane) {
    for (int64_t y = 0; y < height; ++y)
      line(in + y * width, width, 1, &rows[static_cast<size_t>(y * new_width)], new_width, 1);
    for (int64_t i = 0; i < new_width; ++i)
      line(&rows[static_cast<size_t>(i)], height, new_width, result + i, new_height, new_width);
    in += height * width;
    result += new_height * new_width;
  }
  return {out};
}
