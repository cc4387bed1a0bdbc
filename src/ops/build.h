// Short functions that append operators to a graph, for composite bodies, gradient rules and passes.
#pragma once

#include <span>
#include <vector>

#include <millrace/graph.h>

namespace millrace::ops {

/// f32 for the 16-bit floats, else the dtype itself.
inline DType wide(DType dtype) { return dtype.is_float() && dtype.bits < 32 ? f32 : dtype; }

/// Appends operators to one graph. Binary arithmetic broadcasts its operands (numpy rules) by explicit
/// broadcast nodes.
class Build {
 public:
  explicit Build(Graph& graph) : graph_(graph) {}
  Graph& graph() { return graph_; }
  const Type& type(Value a) const { return graph_.type(a); }
  const Shape& shape(Value a) const { return graph_.type(a).shape; }
  DType dtype(Value a) const { return graph_.type(a).dtype; }

  /// A constant of `like`'s dtype, broadcast to its shape.
  Value fill(Value like, double value);
  Value zeros(Value like) { return fill(like, 0); }
  Value scalar(DType dtype, double value) { return graph_.scalar(dtype, value); }

  Value unary(std::string_view op, Value a) { return graph_.add(op, {a}); }
  Value binary(std::string_view op, Value a, Value b);
  Value add(Value a, Value b) { return binary("add", a, b); }
  Value sub(Value a, Value b) { return binary("sub", a, b); }
  Value mul(Value a, Value b) { return binary("mul", a, b); }
  Value div(Value a, Value b) { return binary("div", a, b); }
  Value add(Value a, double b) { return add(a, fill(a, b)); }
  Value sub(Value a, double b) { return sub(a, fill(a, b)); }
  Value mul(Value a, double b) { return mul(a, fill(a, b)); }
  Value div(Value a, double b) { return div(a, fill(a, b)); }
  Value neg(Value a) { return unary("neg", a); }
  Value select(Value condition, Value if_true, Value if_false);
  Value cast(Value a, DType dtype);  // a itself when it already has that dtype
  /// Cast to wide(dtype): what sums and exponentials of 16-bit floats are computed in.
  Value widen(Value a) { return cast(a, wide(dtype(a))); }

  /// a broadcast to `shape` (numpy's rule); a itself when equal.
  Value broadcast(Value a, const Shape& shape);
  /// The gradient of broadcast: sums `a` down to `shape`.
  Value sum_to(Value a, const Shape& shape);
  Value reshape(Value a, const Shape& shape);
  Value transpose(Value a, const std::vector<int64_t>& permutation);
  Value sum(Value a, const std::vector<int64_t>& axes, bool keep_dims);
  Value mean(Value a, const std::vector<int64_t>& axes, bool keep_dims);
  Value max(Value a, const std::vector<int64_t>& axes, bool keep_dims);
  Value softmax(Value a, int64_t axis, bool zero_empty = false);
  Value matmul(Value a, Value b, bool transpose_a = false, bool transpose_b = false);

 private:
  Graph& graph_;
};

}  // namespace millrace::ops
