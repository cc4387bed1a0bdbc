#include "ops/build.h"

#include <algorithm>

namespace millrace::ops {

Value Build::fill(Value like, double value) {
  return broadcast(scalar(dtype(like), value), Shape(shape(like)));
}

Value Build::binary(std::string_view op, Value a, Value b) {
  if (shape(a) != shape(b)) {
    const Shape to = broadcast_shapes(shape(a), shape(b));
    a = broadcast(a, to);
    b = broadcast(b, to);
  }
  return graph_.add(op, {a, b});
}

Value Build::select(Value condition, Value if_true, Value if_false) {
  const Shape to = broadcast_shapes(shape(condition), broadcast_shapes(shape(if_true), shape(if_false)));
  return graph_.add("select", {broadcast(condition, to), broadcast(if_true, to), broadcast(if_false, to)});
}

Value Build::cast(Value a, DType to) { return dtype(a) == to ? a : graph_.add("cast", {a}, {{"dtype", to}}); }

Value Build::broadcast(Value a, const Shape& to) {
  return shape(a) == to ? a : graph_.add("broadcast", {a}, {{"shape", to}});
}

Value Build::sum_to(Value a, const Shape& to) {
  const Shape from = shape(a);
  if (from == to) return a;
  std::vector<int64_t> axes;
  const int extra = from.rank() - to.rank();
  for (int d = 0; d < from.rank(); ++d)
    if (d < extra || (to[d - extra] == 1 && !(from[d] == 1))) axes.push_back(d);
  return reshape(axes.empty() ? a : sum(a, axes, false), to);
}

Value Build::reshape(Value a, const Shape& to) {
  return shape(a) == to ? a : graph_.add("reshape", {a}, {{"shape", to}});
}

Value Build::transpose(Value a, const std::vector<int64_t>& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end())
             ? a
             : graph_.add("transpose", {a}, {{"permutation", permutation}});
}

Value Build::sum(Value a, const std::vector<int64_t>& axes, bool keep_dims) {
  return graph_.add("sum", {a}, {{"axes", axes}, {"keep_dims", keep_dims}});
}

Value Build::mean(Value a, const std::vector<int64_t>& axes, bool keep_dims) {
  return graph_.add("mean", {a}, {{"axes", axes}, {"keep_dims", keep_dims}});
}

Value Build::max(Value a, const std::vector<int64_t>& axes, bool keep_dims) {
  return graph_.add("max", {a}, {{"axes", axes}, {"keep_dims", keep_dims}});
}

Value Build::softmax(Value a, int64_t axis, bool zero_empty) {
  return graph_.add("softmax", {a}, {{"axis", axis}, {"zero_empty", zero_empty}});
}

Value Build::matmul(Value a, Value b, bool transpose_a, bool transpose_b) {
  return graph_.add("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

}  // namespace millrace::ops
