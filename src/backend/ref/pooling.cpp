#include "ops/pooling.h"

#include <algorithm>
#include <cmath>

#include "backend/ref/registry.h"

using namespace millrace;

namespace {

/// Calls f(position of the window, first position of its image, rows and columns of the image it covers).
template <typename F>
void for_each_window(const Shape& x, const Attributes& attributes, F f) {
  const ops::Pooling p = ops::pooling(x, attributes);
  const int64_t images = x[0].size() * x[1].size();
  for (int64_t image = 0; image < images; ++image)
    for (int64_t row = 0; row < p.out_height; ++row)
      for (int64_t column = 0; column < p.out_width; ++column) {
        const int64_t top = row * p.stride_h - p.top, left = column * p.stride_w - p.left;
        f((image * p.out_height + row) * p.out_width + column, image * p.height * p.width,
          std::pair(std::max<int64_t>(top, 0), std::min(top + p.kernel_h, p.height)),
          std::pair(std::max<int64_t>(left, 0), std::min(left + p.kernel_w, p.width)));
      }
}

std::vector<int64_t> first_maxima(const Array& x, const Attributes& attributes) {
  const int64_t width = x.shape()[3].size();
  std::vector<int64_t> positions;
  for_each_window(x.shape(), attributes, [&](int64_t, int64_t image, auto rows, auto columns) {
    int64_t best = rows.first * width + columns.first;
    for (int64_t h = rows.first; h < rows.second; ++h)
      for (int64_t w = columns.first; w < columns.second; ++w) {
        const double value = x.at(image + h * width + w), highest = x.at(image + best);
        if (value > highest || (std::isnan(value) && !std::isnan(highest))) best = h * width + w;
      }
    positions.push_back(best);
  });
  return positions;
}

/// What each element of a window weighs in its mean.
double weight(const Attributes& attributes, int64_t rows, int64_t columns) {
  const std::vector<int64_t>& kernel = attributes.ints("kernel");
  const bool all = attributes.flag("count_include_pad");
  return 1.0 / static_cast<double>(all ? kernel[0] * kernel[1] : rows * columns);
}

}  // namespace

MILLRACE_REF(max_pool2d_values) {
  const Array& x = operands[0];
  Array out(node.types[0]);
  const std::vector<int64_t> positions = first_maxima(x, node.attributes);
  const int64_t image = x.shape()[2].size() * x.shape()[3].size();
  const int64_t windows = out.shape()[2].size() * out.shape()[3].size();
  for (int64_t i = 0; i < out.count(); ++i) out.set(i, x.at(i / windows * image + positions[i]));
  return {out};
}

MILLRACE_REF(max_pool2d_positions) {
  Array out(node.types[0]);
  const std::vector<int64_t> positions = first_maxima(operands[0], node.attributes);
  for (size_t i = 0; i < positions.size(); ++i) out.set_int(static_cast<int64_t>(i), positions[i]);
  return {out};
}

MILLRACE_REF(max_pool2d_grad) {
  std::vector<double> dx(node.types[0].shape.count());
  const Array &dy = operands[0], &positions = operands[1];
  for_each_window(node.types[0].shape, node.attributes,
                  [&](int64_t i, int64_t image, auto, auto) { dx[image + positions.int_at(i)] += dy.at(i); });
  return {Array::of(node.types[0].dtype, node.types[0].shape, dx)};
}

MILLRACE_REF(avg_pool2d) {
  Array out(node.types[0]);
  const Array& x = operands[0];
  const int64_t width = x.shape()[3].size();
  for_each_window(x.shape(), node.attributes, [&](int64_t i, int64_t image, auto rows, auto columns) {
    double sum = 0;
    for (int64_t h = rows.first; h < rows.second; ++h)
      for (int64_t w = columns.first; w < columns.second; ++w) sum += x.at(image + h * width + w);
    out.set(i, sum * weight(node.attributes, rows.second - rows.first, columns.second - columns.first));
  });
  return {out};
}

MILLRACE_REF(avg_pool2d_grad) {
  std::vector<double> dx(node.types[0].shape.count());
  const Array& dy = operands[0];
  const int64_t width = node.types[0].shape[3].size();
  for_each_window(
      node.types[0].shape, node.attributes, [&](int64_t i, int64_t image, auto rows, auto columns) {
        const double part =
            dy.at(i) * weight(node.attributes, rows.second - rows.first, columns.second - columns.first);
        for (int64_t h = rows.first; h < rows.second; ++h)
          for (int64_t w = columns.first; w < columns.second; ++w) dx[image + h * width + w] += part;
      });
  return {Array::of(node.types[0].dtype, node.types[0].shape, dx)};
}
