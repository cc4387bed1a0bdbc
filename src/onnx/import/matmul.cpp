#include "onnx/import/matmul.h"

namespace millrace::onnx {
namespace {

/// Of matrices of one rank. Whole numbers are multiplied and summed one by one.
Value product(ImportCall& call, Value a, Value b) {
  if (call.b.dtype(a).is_float()) return call.b.matmul(a, b);
  Shape left = call.b.shape(a), right = call.b.shape(b);
  const int rank = left.rank();
  if (left[rank - 1] != right[rank - 2])
    call.refuse("rows of the left and columns of the right differ in size");
  left.push_back(1);
  right.insert(right.end() - 2, Dim(1));
  const Value all = call.b.mul(call.b.reshape(a, left), call.b.reshape(b, right));
  return call.b.sum(all, {rank - 1}, false);
}

}  // namespace

Value multiplied(ImportCall& call, Value a, Value b) {
  const Shape first = call.b.shape(a), second = call.b.shape(b);
  const bool row = first.rank() == 1, column = second.rank() == 1;
  if (first.rank() == 0 || second.rank() == 0) call.refuse("a number has no rows");
  if (row) a = call.b.reshape(a, {1, first[0]});
  if (column) b = call.b.reshape(b, {second[0], 1});
  const auto leading = [&](Value x) { return Shape(call.b.shape(x).begin(), call.b.shape(x).end() - 2); };
  // One matrix for all rows.
  const Shape rows = leading(a);
  const bool one = leading(b).rank() == 0 && rows.rank() > 0;
  if (one) {
    const int64_t height = call.b.shape(a).sizes()[call.b.shape(a).size() - 2];
    a = call.b.reshape(a, {rows.count() * height, call.b.shape(a).back()});
    const Value flat = product(call, a, b);
    Shape shape = rows;
    if (!row) shape.emplace_back(height);
    if (!column) shape.push_back(call.b.shape(b).back());
    return call.b.reshape(flat, shape);
  }
  if (leading(b).rank() > 0) {
    const Shape both = broadcast_shapes(leading(a), leading(b));
    const auto widened = [&](Value x) {
      Shape shape = both;
      shape.insert(shape.end(), call.b.shape(x).end() - 2, call.b.shape(x).end());
      return call.b.broadcast(x, shape);
    };
    a = widened(a);
    b = widened(b);
  }
  const Value y = product(call, a, b);
  Shape shape = call.b.shape(y);
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return call.b.reshape(y, shape);
}

}  // namespace millrace::onnx

using namespace millrace;

MILLRACE_ONNX_IMPORT(MatMul) { return {onnx::multiplied(call, call[0], call[1])}; }
