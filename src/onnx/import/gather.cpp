#include "base/format.h"
#include "onnx/import/places.h"
#include "onnx/import/size_decisions.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;

MILLRACE_ONNX_IMPORT(Gather) {
  const Value x = call.buffer(0), at = call.buffer(1);
  const int64_t axis = call.axis(call.integer("axis", 0), call.b.shape(x).rank());
  if (const Array* known = call.graph.constant_value(at)) {
    const int64_t size = call.b.shape(x)[static_cast<size_t>(axis)].size();
    for (int64_t i = 0; i < known->count(); ++i)
      if (known->int_at(i) < -size || known->int_at(i) >= size)
        call.refuse(
            fmt::format("its index {} is outside of the {} places of axis {}", known->int_at(i), size, axis));
  }
  if (onnx::repeats(call.graph, call.node, call.items())) {
    const Array& known = *call.graph.constant_value(at);
    Array first(known.dtype(), {1});
    first.set(0, known.at(0));
    const Value row =
        call.gather(x, counted_from_front(call, call.constant(first), call.true_size(0, axis)), axis);
    Shape one(static_cast<size_t>(known.shape().rank()), Dim(1)), all = known.shape();
    for (int d = 1; d < call.b.shape(x).rank(); ++d) {
      one.push_back(call.b.shape(x)[static_cast<size_t>(d)]);
      all.push_back(one.back());
    }
    return {call.b.broadcast(call.b.reshape(row, one), all)};
  }
  const Value indices = counted_from_front(call, at, call.true_size(0, axis));
  const Value result = call.gather(x, indices, axis);
  const bool moved = call.bounded(0) && call.item(0).bounded_axis != axis;
  if (moved && call.bounded(1)) call.refuse_two_sizes();
  if (call.bounded(1))
    return {Item::bounded(result, static_cast<int>(axis) + call.item(1).bounded_axis, call.item(1).size)};
  if (!moved) return {result};
  const int from = call.item(0).bounded_axis;
  return {Item::bounded(result, from < axis ? from : from + call.b.shape(at).rank() - 1, call.item(0).size)};
}

/// Each position of the result takes one element: indices into the flattened data.
MILLRACE_ONNX_IMPORT(GatherElements) {
  const Value flat = places_of_elements(call, call.axis(call.integer("axis", 0), call.rank(0)));
  const Shape all{call.shape(0).count()};
  return {call.gather(call.b.reshape(call[0], all), flat, 0)};
}

/// Each row of indices takes a slice.
MILLRACE_ONNX_IMPORT(GatherND) {
  const int64_t batch = call.integer("batch_dims", 0);
  const Value x = call.buffer(0), indices = call.buffer(1);
  const Ints sizes = call.b.shape(x).sizes(), places = call.b.shape(indices).sizes();
  const auto depth = places.empty() ? 0 : places.back();
  if (places.empty() || batch < 0 || batch + depth > static_cast<int64_t>(sizes.size()) ||
      batch >= static_cast<int64_t>(places.size()))
    call.refuse("its indices do not fit its data");
  const Shape rows(Ints(places.begin(), places.end() - 1));
  Value flat = call.b.broadcast(call.scalar(i64, 0), rows);
  int64_t stride = 1;
  for (int64_t d = batch + depth - 1; d >= 0; --d) {
    const int64_t size = sizes[static_cast<size_t>(d)];
    Value at;
    if (d < batch) {
      at = call.places(rows, d);
    } else {
      const Value column = call.part(indices, std::ssize(places) - 1, d - batch, d - batch + 1);
      at = counted_from_front(call, call.b.reshape(column, rows), call.true_size(0, d));
    }
    flat = call.b.add(flat, call.b.mul(at, static_cast<double>(stride)));
    stride *= size;
  }
  Shape table{stride};
  for (size_t d = static_cast<size_t>(batch + depth); d < sizes.size(); ++d) table.emplace_back(sizes[d]);
  const Value result = call.gather(call.b.reshape(x, table), flat, 0);
  // The axis of the data that lies behind what is looked up, or in front of it, is one of the result.
  const int from = call.bounded(0) ? call.item(0).bounded_axis : -1;
  const bool behind = from >= batch + depth, in_front = from >= 0 && from < batch;
  if (call.bounded(1) && (behind || call.item(1).bounded_axis == std::ssize(places) - 1))
    call.refuse_sizes(
        "two of its result's sizes, or how deep it looks, depend on data; Millrace has room for one");
  if (call.bounded(1)) return {Item::bounded(result, call.item(1).bounded_axis, call.item(1).size)};
  if (in_front) return {Item::bounded(result, from, call.item(0).size)};
  if (!behind) return {result};
  return {Item::bounded(result, rows.rank() + from - static_cast<int>(batch + depth), call.item(0).size)};
}
