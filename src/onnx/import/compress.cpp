#include <algorithm>

#include "onnx/import/bounded.h"

using namespace millrace;
using onnx::Item;

/// The slices whose condition holds.
MILLRACE_ONNX_IMPORT(Compress) {
  Value x = call.buffer(0);
  const Shape shape = call.b.shape(x);
  const int rank = std::max(1, shape.rank());
  const bool flat = !call.has("axis");
  if (flat || shape.rank() == 0) x = call.b.reshape(x, {shape.count()});
  const int64_t axis = flat ? 0 : call.axis(call.integer("axis"), rank);
  const int64_t size = call.b.shape(x)[static_cast<size_t>(axis)].size();
  if (call.bounded(0) && shape.rank() > 1 && (flat || call.item(0).bounded_axis != axis)) (void)call[0];
  if (call.graph.type(call.buffer(1)).shape.rank() != 1) call.refuse("its condition is no list");
  Value mask = call.buffer(1);
  for (const int k : {0, 1})
    if (call.bounded(k) && call.b.shape(mask)[0] == call.b.shape(call.buffer(k))[0])
      mask = onnx::masked(call, mask, 0, call.item(k).size, 0);
  const int64_t given = call.b.shape(mask)[0].size();
  if (given > size) mask = call.part(mask, 0, 0, size);
  const onnx::Chosen found = onnx::chosen(call, mask);
  return {Item::bounded(call.gather(x, found.order, axis), static_cast<int>(axis), found.count)};
}

/// The places of what is not 0, [rank, places].
MILLRACE_ONNX_IMPORT(NonZero) {
  Value x = call.buffer(0);
  const Shape shape = call.b.shape(x);
  if (call.bounded(0)) x = onnx::masked(call, x, call.item(0).bounded_axis, call.item(0).size, 0);
  if (!call.b.dtype(x).is_bool()) x = call.compare("not_equal", x, 0);
  if (shape.rank() == 0) {  // no coordinates, as many times as it is not 0
    Array none(i64, {0, 1});
    return {Item::bounded(call.constant(none), 1, call.b.cast(x, i64))};
  }
  const Value places = call.graph.add("nonzero", {x});
  return {Item::bounded(places, 1, {places.node, 1})};
}
