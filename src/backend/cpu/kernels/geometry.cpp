#include "backend/cpu/kernels/geometry.h"

#include <algorithm>

#include <millrace/operator.h>

namespace millrace::cpu {

double Geometry::work() const {
  const auto count = [](auto... sizes) { return (1.0 * ... * static_cast<double>(sizes)); };
  return 2 * count(images, out_height, out_width, out_channels, in_channels / groups, kernel_height,
                   kernel_width) +
         32 * (count(images, in_channels, in_height, in_width) +
               count(images, out_channels, out_height, out_width));
}

/// Rows that the kernel spans.
static int64_t reach(const Geometry& g) { return (g.kernel_height - 1) * g.dilation_h + 1; }

Slab slab_of(const Geometry& g, int64_t begin, int64_t end) {
  if (begin == 0 && end == g.out_height) return {0, g.in_height, g.out_height, g.top, g.bottom};
  const int64_t first = begin * g.stride_h - g.top, last = (end - 1) * g.stride_h - g.top + reach(g);
  const int64_t top = std::max<int64_t>(-first, 0), bottom = std::max<int64_t>(last - g.in_height, 0);
  return {first + top, last - first - top - bottom, end - begin, top, bottom};
}

bool can_cut_rows(const Geometry& g) { return g.top < reach(g) && g.bottom < reach(g); }

ProductProvider::ProductProvider(Build convolution, Build weight_gradient, Build matmul)
    : OperatorProvider(matmul ? "only matmul and 2-D convolutions" : "only 2-D convolutions",
                       {{"conv2d", convolution},
                        {"fused_conv2d", convolution},
                        {"conv2d_input_grad", convolution},
                        {"conv2d_weight_grad", weight_gradient},
                        {"matmul", matmul}}) {}

LayoutWish ProductProvider::layouts(const Graph& /*graph*/, const Node& node) const {
  const Layout row_major, channels_last{0, 2, 3, 1};
  const auto part = ops::convolution_part(node);
  if (!part) return {{row_major, row_major}, {row_major}};
  if (part == ops::ConvolutionPart::weight_gradient) return {{channels_last, channels_last}, {row_major}};
  LayoutWish wish{{channels_last, row_major}, {channels_last}};
  // Of fused_conv2d a residual, like the result, and a bias.
  if (node.operands.size() == 4) wish.operands.emplace_back(channels_last);
  if (node.operands.size() > 2) wish.operands.emplace_back(row_major);
  return wish;
}

bool ProductProvider::is_empty(const Graph& graph, const Node& node) {
  return node.types[0].shape.count() == 0 ||
         std::any_of(node.operands.begin(), node.operands.end(),
                     [&](const Value& operand) { return graph.type(operand).shape.count() == 0; });
}

Geometry geometry_of(const Graph& graph, const Node& node) {
  const auto operand = [&](int i) -> const Shape& { return graph.type(node.operands[i]).shape; };
  const Shape& result = node.types[0].shape;
  const auto part = ops::convolution_part(node);
  const Shape& x = part == ops::ConvolutionPart::input_gradient ? result : operand(0);
  const Shape& w = part == ops::ConvolutionPart::weight_gradient ? result : operand(1);
  return {ops::convolution(x, w, node.attributes), graph.type(node.operands[0]).dtype};
}

MatrixProduct matrix_product_of(const Graph& graph, const Node& node) {
  const Shape &a = graph.type(node.operands[0]).shape, &y = node.types[0].shape;
  const int rank = y.rank();
  MatrixProduct p{};
  p.transpose_a = node.attributes.flag("transpose_a");
  p.transpose_b = node.attributes.flag("transpose_b");
  p.batch = 1;
  for (int i = 0; i < rank - 2; ++i) p.batch *= y[i].size();
  p.m = y[rank - 2].size();
  p.n = y[rank - 1].size();
  p.k = a[rank - (p.transpose_a ? 2 : 1)].size();
  p.dtype = node.types[0].dtype;
  return p;
}

}  // namespace millrace::cpu
