#include <millrace/scalar.h>

#include "onnx/import/bounded.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;

/// The slices along an axis (or elements) that differ.
MILLRACE_ONNX_IMPORT(Unique) {
  ops::Build& b = call.b;
  const bool whole = !call.has("axis");
  const Item& item = call.item(0);
  const Shape shape = b.shape(call.buffer(0));
  const int64_t axis = whole ? 0 : call.axis(call.integer("axis"), shape.rank());
  const auto at = static_cast<size_t>(axis);
  if (call.bounded(0) && (whole ? shape.rank() > 1 : item.bounded_axis != axis)) (void)call[0];
  const Value x = whole ? b.reshape(item.value, {shape.count()}) : item.value;
  const int64_t n = b.shape(x)[at].size(), width = n == 0 ? 0 : b.shape(x).count() / n;
  Ints order{axis};
  for (int64_t d = 0; d < b.shape(x).rank(); ++d)
    if (d != axis) order.push_back(d);
  Value rows = b.reshape(b.transpose(x, order), {n, width});
  const DType dtype = b.dtype(rows);
  rows = b.cast(rows, dtype.is_float() ? dtype == f64 ? f64 : f32 : dtype == u64 ? u64 : i64);
  const Value count = call.bounded(0) ? item.size : call.whole(n);
  const Value found = call.graph.add("unique", {rows, count}, {{"sorted", call.integer("sorted", 1) != 0}});
  const Value first = found, many{found.node, 1}, number{found.node, 2}, size{found.node, 3};
  return {Item::bounded(call.gather(x, first, axis), static_cast<int>(axis), size),
          Item::bounded(first, 0, size), call.bounded(0) ? Item::bounded(number, 0, count) : Item(number),
          Item::bounded(many, 0, size)};
}
