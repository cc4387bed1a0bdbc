// Functions of tensors that move elements or reduce.
#include <limits>

#include "base/format.h"
#include "trace/functions.h"
#include "trace/node.h"

namespace millrace {

using trace::axis_of;
using trace::unary;

Tensor reshape(const In& a, const Shape& shape) {
  return a.tensor.shape() == shape ? a.tensor : unary("reshape", a, {{"shape", shape}});
}

Tensor flatten(const In& a, int first) {
  if (a.tensor.rank() == 0) return reshape(a, {1});
  const Shape& from = a.tensor.shape();
  const int at = axis_of(a, first, "flatten");
  Shape shape(from.begin(), from.begin() + at);
  shape.push_back(Shape(from.begin() + at, from.end()).elements());
  return reshape(a, shape);
}

Tensor squeeze(const In& a) {
  Shape shape;
  for (const Dim& dim : a.tensor.shape())
    if (!(dim == 1)) shape.push_back(dim);
  return reshape(a, shape);
}

Tensor squeeze(const In& a, int axis) {
  const int at = axis_of(a, axis, "squeeze");
  Shape shape = a.tensor.shape();
  if (!(shape[at] == 1))
    fail<TypeError>("squeeze: dimension {} of {} is not 1 (at {})", axis, a.tensor.type().str(),
                    trace::place(a.where));
  shape.erase(shape.begin() + at);
  return reshape(a, shape);
}

Tensor unsqueeze(const In& a, int axis) {
  Shape shape = a.tensor.shape();
  const int at = axis < 0 ? axis + shape.rank() + 1 : axis;
  if (at < 0 || at > shape.rank())
    fail<TypeError>("unsqueeze: {} cannot get an axis {}", a.tensor.type().str(), axis);
  shape.insert(shape.begin() + at, Dim(1));
  return reshape(a, shape);
}

Tensor broadcast_to(const In& a, const Shape& shape) {
  return a.tensor.shape() == shape ? a.tensor : unary("broadcast", a, {{"shape", shape}});
}

Tensor transpose(const In& a, const std::vector<int64_t>& permutation) {
  std::vector<int64_t> from_front = permutation;
  for (int64_t& axis : from_front)
    if (axis < 0) axis += a.tensor.rank();
  return unary("transpose", a, {{"permutation", from_front}});
}

Tensor slice(const In& a, int axis, int64_t start, int64_t end) {
  const auto rank = static_cast<size_t>(a.tensor.rank());
  const int at = axis_of(a, axis, "slice");
  std::vector<int64_t> starts(rank, 0), ends(rank, std::numeric_limits<int64_t>::max());
  starts[at] = start;
  ends[at] = end;
  return unary("slice", a, {{"starts", starts}, {"ends", ends}});
}

Tensor select_index(const In& a, int axis, int64_t index) {
  const int at = axis_of(a, axis, "select_index");
  const int64_t end = index == -1 ? std::numeric_limits<int64_t>::max() : index + 1;
  const Tensor one = slice(a, at, index, end);
  if (!(one.dim(at) == 1))
    fail<TypeError>("select_index: {} has no position {} on axis {}", a.tensor.type().str(), index, axis);
  return squeeze({one, a.where}, at);
}

Tensor concat(std::span<const Tensor> parts, int axis, std::source_location where) {
  return apply("concat", parts, {{"axis", int64_t{axis}}}, where)[0];
}

Tensor pad(const In& a, const std::vector<std::pair<int64_t, int64_t>>& amounts, double value) {
  std::vector<int64_t> low, high;
  for (const auto& [before, after] : amounts) {
    low.push_back(before);
    high.push_back(after);
  }
  return unary("pad", a, {{"low", low}, {"high", high}, {"value", value}});
}

Tensor embedding(const In& table, const Tensor& indices) {
  const Tensor both[] = {table.tensor, indices};
  return apply("embedding", both, {}, table.where)[0];
}

Tensor one_hot(const In& indices, int64_t classes, DType dtype) {
  return unary("one_hot", indices, {{"depth", classes}, {"dtype", dtype}});
}

Tensor iota(int64_t size, DType dtype, std::source_location where) {
  return apply("iota", {}, {{"shape", Shape{size}}, {"dtype", dtype}}, where)[0];
}

Tensor sum(const In& a, const std::vector<int64_t>& axes, bool keep_dims) {
  return unary("sum", a, {{"axes", axes}, {"keep_dims", keep_dims}});
}
Tensor mean(const In& a, const std::vector<int64_t>& axes, bool keep_dims) {
  return unary("mean", a, {{"axes", axes}, {"keep_dims", keep_dims}});
}
Tensor max(const In& a, const std::vector<int64_t>& axes, bool keep_dims) {
  return unary("max", a, {{"axes", axes}, {"keep_dims", keep_dims}});
}
Tensor min(const In& a, const std::vector<int64_t>& axes, bool keep_dims) {
  return unary("min", a, {{"axes", axes}, {"keep_dims", keep_dims}});
}
Tensor argmax(const In& a, int axis, bool keep_dims) {
  return unary("argmax", a, {{"axes", std::vector<int64_t>{axis}}, {"keep_dims", keep_dims}});
}

Tensor Tensor::sum(const std::vector<int64_t>& axes, bool keep_dims, std::source_location where) const {
  return millrace::sum({*this, where}, axes, keep_dims);
}
Tensor Tensor::mean(const std::vector<int64_t>& axes, bool keep_dims, std::source_location where) const {
  return millrace::mean({*this, where}, axes, keep_dims);
}
Tensor Tensor::reshape(const Shape& shape, std::source_location where) const {
  return millrace::reshape({*this, where}, shape);
}
Tensor Tensor::cast(DType dtype, std::source_location where) const {
  return millrace::cast({*this, where}, dtype);
}

}  // namespace millrace
