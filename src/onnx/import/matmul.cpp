#include "onnx/import/call.h"

using namespace millrace;

/// Of any rank: rows and columns that are missing are added, leading dimensions broadcast.
MILLRACE_ONNX_IMPORT(MatMul) {
  Value a = call[0], b = call[1];
  const bool row = call.rank(0) == 1, column = call.rank(1) == 1;
  if (call.rank(0) == 0 || call.rank(1) == 0) call.refuse("a number has no rows");
  if (row) a = call.b.reshape(a, {1, call.shape(0)[0]});
  if (column) b = call.b.reshape(b, {call.shape(1)[0], 1});
  const auto leading = [&](Value x) { return Shape(call.b.shape(x).begin(), call.b.shape(x).end() - 2); };
  // One matrix for all rows.
  const Shape rows = leading(a);
  const bool one = leading(b).rank() == 0 && rows.rank() > 0;
  if (one) {
    const int64_t height = call.b.shape(a).sizes()[call.b.shape(a).size() - 2];
    a = call.b.reshape(a, {rows.count() * height, call.b.shape(a).back()});
    const Value flat = call.b.matmul(a, b);
    Shape shape = rows;
    if (!row) shape.emplace_back(height);
    if (!column) shape.push_back(call.b.shape(b).back());
    return {call.b.reshape(flat, shape)};
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
  const Value y = call.b.matmul(a, b);
  Shape shape = call.b.shape(y);
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return {call.b.reshape(y, shape)};
}
