// What convolutions and products of matrices compute, for every provider of them.
#pragma once

#include <compare>
#include <cstdint>

#include <millrace/graph.h>

#include "ops/convolution.h"
#include "target/provider.h"

namespace millrace::cpu {

/// y = conv2d(x, w), whichever of the three the node computes.
struct Geometry : ops::Convolution {
  DType dtype;

  /// FLOPs, and some for every element that is moved: about how long it takes.
  double work() const;
};

/// Some rows of y, and the rows of x (of one image) that they are computed from.
struct Slab {
  int64_t first_in, in_height, out_height, top, bottom;  // top, bottom: padding
  auto operator<=>(const Slab&) const = default;
};

/// The rows [begin, end) of y. Only where can_cut_rows() when they are not all.
Slab slab_of(const Geometry& g, int64_t begin, int64_t end);
/// True when every row of y depends on some row of x.
bool can_cut_rows(const Geometry& g);

Geometry geometry_of(const Graph& graph, const Node& node);

/// y[batch, m, n] = a · b, each side as it lies in memory.
struct MatrixProduct {
  int64_t batch, m, k, n;
  bool transpose_a, transpose_b;
  DType dtype;

  double operations() const { return 2.0 * static_cast<double>(batch * m * k) * static_cast<double>(n); }
};

MatrixProduct matrix_product_of(const Graph& graph, const Node& node);

/// A provider of products and convolutions. Products read and write rows; convolutions have their maps
/// channels-last.
class ProductProvider : public OperatorProvider {
 public:
  using OperatorProvider::OperatorProvider;
  /// Of conv2d, fused_conv2d and conv2d's gradients, and of matmul where that is not null.
  ProductProvider(Build convolution, Build weight_gradient, Build matmul = nullptr);
  LayoutWish layouts(const Graph& graph, const Node& node) const override;

 protected:
  /// Whether an operand or the result has no elements.
  static bool is_empty(const Graph& graph, const Node& node);
};

}  // namespace millrace::cpu
