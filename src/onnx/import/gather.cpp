#include "onnx/import/places.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(Gather) {
  const int64_t axis = call.axis(call.integer("axis", 0), call.rank(0));
  const Value indices = counted_from_front(call, call[1], call.shape(0)[static_cast<size_t>(axis)].size());
  return {call.graph.add("gather", {call[0], indices}, {{"axis", axis}})};
}

/// Each position of the result takes one element: indices into the flattened data.
MILLRACE_ONNX_IMPORT(GatherElements) {
  const Value flat = places_of_elements(call, call.axis(call.integer("axis", 0), call.rank(0)));
  const Shape all{call.shape(0).count()};
  return {call.graph.add("gather", {call.b.reshape(call[0], all), flat}, {{"axis", int64_t{0}}})};
}

/// Each row of indices takes a slice.
MILLRACE_ONNX_IMPORT(GatherND) {
  const int64_t batch = call.integer("batch_dims", 0);
  const Ints sizes = call.shape(0).sizes(), places = call.shape(1).sizes();
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
      at = call.graph.add("iota", {}, {{"shape", rows}, {"axis", d}});
    } else {
      Ints from(places.size(), 0), to = places;
      from.back() = d - batch;
      to.back() = d - batch + 1;
      const Value column = call.graph.add("slice", {call[1]}, {{"starts", from}, {"ends", to}});
      at = counted_from_front(call, call.b.reshape(column, rows), size);
    }
    flat = call.b.add(flat, call.b.mul(at, static_cast<double>(stride)));
    stride *= size;
  }
  Shape table{stride};
  for (size_t d = static_cast<size_t>(batch + depth); d < sizes.size(); ++d) table.emplace_back(sizes[d]);
  return {call.graph.add("gather", {call.b.reshape(call[0], table), flat}, {{"axis", int64_t{0}}})};
}
