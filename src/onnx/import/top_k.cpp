#include <algorithm>
#include <utility>

#include "onnx/import/bounded.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;

MILLRACE_ONNX_IMPORT(TopK) {
  Value given = call.buffer(0);
  const int rank = call.b.shape(given).rank();
  const int64_t axis = call.axis(call.integer("axis", -1), rank);
  onnx::ImportCall::Said counts{{call.integer("k", 0)}, {call.integer("k", 0)}, {}};
  if (call.opset >= 10) counts = call.sizes_said(1);
  if (counts.most.size() != 1) call.refuse("k must be one number");
  const bool smallest = call.integer("largest", 1) == 0;
  Ints swapped = onnx::numbered(0, rank);
  std::swap(swapped[static_cast<size_t>(axis)], swapped.back());
  const DType dtype = call.b.dtype(given);
  const bool along = call.bounded(0) && call.item(0).bounded_axis == axis;
  if (along)  // what does not count comes last
    given = onnx::masked(call, given, axis, call.item(0).size,
                         smallest ? onnx::highest(dtype) : onnx::lowest(dtype));
  const int64_t size = call.b.shape(given)[static_cast<size_t>(axis)].size();
  // Of fewer there are fewer.
  const int64_t most = along || !counts.known() ? std::min(counts.most[0], size) : counts.most[0];
  Value x = dtype == f64 || dtype == f32 ? given : call.b.cast(given, dtype.is_float() ? f32 : f64);
  if (smallest) x = call.graph.add("neg", {x});
  const Value found = call.graph.add("top_k", {call.b.transpose(x, swapped)}, {{"k", most}});
  Value values = call.b.transpose(found, swapped);
  if (smallest) values = call.graph.add("neg", {values});
  values = call.b.cast(values, dtype);
  const Value at = call.b.transpose({found.node, 1}, swapped);
  if (!call.bounded(0) && counts.known()) return {values, at};
  if (call.bounded(0) && !along) {
    if (!counts.known()) call.refuse_two_sizes();
    const Item& item = call.item(0);
    return {Item::bounded(values, item.bounded_axis, item.size),
            Item::bounded(at, item.bounded_axis, item.size)};
  }
  Value count = call.whole(most);
  if (!counts.known()) count = call.b.binary("minimum", count, call.element(counts.values, 0));
  if (along) count = call.b.binary("minimum", count, call.item(0).size);
  const auto where = static_cast<int>(axis);
  return {Item::bounded(values, where, count), Item::bounded(at, where, count)};
}
