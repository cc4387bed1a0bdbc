#include "ops/convolution.h"

#include "backend/ref/registry.h"

using namespace millrace;

namespace {

/// Elements of a row of x and of y that are multiplied with the same element of w: every `step`-th of x.
/// Where there are none, `x` may lie outside.
struct Products {
  int64_t x, w, y, count, step;
};

/// Calls f(Products) for all products of the convolution y = conv2d(x, w).
template <typename F>
void for_each_row(const Shape& x, const Shape& w, const Attributes& attributes, F f) {
  const ops::Convolution c = ops::convolution(x, w, attributes);
  const int64_t ins = c.in_channels / c.groups, outs = c.out_channels / c.groups;  // of one group
  for (int64_t n = 0; n < c.images; ++n)
    for (int64_t o = 0; o < c.out_channels; ++o)
      for (int64_t i = 0; i < ins; ++i)
        for (int64_t kh = 0; kh < c.kernel_height; ++kh)
          for (int64_t kw = 0; kw < c.kernel_width; ++kw) {
            const auto column_of = [&](int64_t y) { return y * c.stride_w + kw * c.dilation_w - c.left; };
            int64_t first = 0, last = c.out_width;
            while (first < last && column_of(first) < 0) ++first;
            while (last > first && column_of(last - 1) >= c.in_width) --last;
            for (int64_t row = 0; row < c.out_height; ++row) {
              const int64_t h = row * c.stride_h + kh * c.dilation_h - c.top;
              if (h < 0 || h >= c.in_height) continue;
              const int64_t channel = o / outs * ins + i;
              const int64_t x_row = ((n * c.in_channels + channel) * c.in_height + h) * c.in_width;
              const int64_t w_at = ((o * ins + i) * c.kernel_height + kh) * c.kernel_width + kw;
              const int64_t y_row = ((n * c.out_channels + o) * c.out_height + row) * c.out_width;
              f(Products{x_row + column_of(first), w_at, y_row + first, last - first, c.stride_w});
            }
          }
}

}  // namespace

MILLRACE_REF(conv2d) {
  const std::vector<double> x = operands[0].to_doubles(), w = operands[1].to_doubles();
  std::vector<double> y(node.types[0].shape.count());
  for_each_row(operands[0].shape(), operands[1].shape(), node.attributes, [&](const Products& r) {
    const double factor = w[r.w];
    for (int64_t i = 0; i < r.count; ++i) y[r.y + i] += x[r.x + i * r.step] * factor;
  });
  return {Array::of(node.types[0].dtype, node.types[0].shape, y)};
}

MILLRACE_REF(conv2d_input_grad) {
  const std::vector<double> dy = operands[0].to_doubles(), w = operands[1].to_doubles();
  std::vector<double> dx(node.types[0].shape.count());
  for_each_row(node.types[0].shape, operands[1].shape(), node.attributes, [&](const Products& r) {
    const double factor = w[r.w];
    for (int64_t i = 0; i < r.count; ++i) dx[r.x + i * r.step] += dy[r.y + i] * factor;
  });
  return {Array::of(node.types[0].dtype, node.types[0].shape, dx)};
}

MILLRACE_REF(conv2d_weight_grad) {
  const std::vector<double> x = operands[0].to_doubles(), dy = operands[1].to_doubles();
  std::vector<double> dw(node.types[0].shape.count());
  for_each_row(operands[0].shape(), node.types[0].shape, node.attributes, [&](const Products& r) {
    double sum = dw[r.w];
    for (int64_t i = 0; i < r.count; ++i) sum += x[r.x + i * r.step] * dy[r.y + i];
    dw[r.w] = sum;
  });
  return {Array::of(node.types[0].dtype, node.types[0].shape, dw)};
}
