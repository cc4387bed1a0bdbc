#include "onnx/import/places.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// Updates at places of the flattened data; `places` i64, of the updates' shape. Where two updates have the
/// same place, without a reduction, ONNX leaves open which one counts.
Value scattered(onnx::ImportCall& call, Value places, Value updates, const std::string& reduction) {
  const Shape shape = call.shape(0), flat{shape.count()}, many{call.b.shape(places).count()};
  const Value data = call.b.reshape(call[0], flat), at = call.b.reshape(places, many),
              what = call.b.reshape(updates, many);
  const auto added = [&](Value base, Value x) {
    return call.graph.add("scatter_add", {base, at, x}, {{"axis", int64_t{0}}});
  };
  if (reduction == "add") return call.b.reshape(added(data, what), shape);
  if (reduction != "none") call.refuse("the reduction '" + reduction + "' is not known (none and add are)");
  const Value zeros = call.b.broadcast(call.scalar(f32, 0), flat);
  const Value hit =
      call.graph.add("greater", {added(zeros, call.b.broadcast(call.scalar(f32, 1), many)), zeros});
  return call.b.reshape(call.b.select(hit, added(call.fill(data, 0), what), data), shape);
}

std::vector<Value> elements(onnx::ImportCall& call) {
  const Value flat = places_of_elements(call, call.axis(call.integer("axis", 0), call.rank(0)));
  return {scattered(call, flat, call[2], call.text("reduction", "none"))};
}

}  // namespace

MILLRACE_ONNX_IMPORT(ScatterElements) { return elements(call); }
MILLRACE_ONNX_IMPORT(Scatter) { return elements(call); }

MILLRACE_ONNX_IMPORT(ScatterND) {
  const Ints sizes = call.shape(0).sizes(), places = call.shape(1).sizes();
  if (places.empty() || places.back() > static_cast<int64_t>(sizes.size()))
    call.refuse("its indices do not fit its data");
  const auto depth = static_cast<size_t>(places.back());
  const Shape rows(Ints(places.begin(), places.end() - 1));
  Shape whole = rows;
  int64_t inner = 1;
  for (size_t d = depth; d < sizes.size(); ++d) inner *= sizes[d];
  Value flat = call.b.broadcast(call.scalar(i64, 0), rows);
  int64_t stride = inner;
  for (size_t d = depth; d-- > 0;) {
    Ints from(places.size(), 0), to = places;
    from.back() = static_cast<int64_t>(d);
    to.back() = from.back() + 1;
    const Value column =
        call.b.reshape(call.graph.add("slice", {call[1]}, {{"starts", from}, {"ends", to}}), rows);
    flat =
        call.b.add(flat, call.b.mul(counted_from_front(call, column, sizes[d]), static_cast<double>(stride)));
    stride *= sizes[d];
  }
  whole.emplace_back(inner);
  Shape one = rows;
  one.emplace_back(1);
  const Value within = call.graph.add("iota", {}, {{"shape", whole}, {"axis", int64_t{-1}}});
  return {scattered(call, call.b.add(call.b.reshape(flat, one), within), call.b.reshape(call[2], whole),
                    call.text("reduction", "none"))};
}
