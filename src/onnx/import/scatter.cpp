#include "onnx/import/places.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// The largest, smallest or product of an element of `data` and of its updates: each is compared with all.
Value combined(onnx::ImportCall& call, Value data, Value at, Value what, const std::string& reduction) {
  if (reduction != "max" && reduction != "min" && reduction != "mul")
    call.refuse("the reduction '" + reduction + "' is not known");
  const int64_t size = call.b.shape(data)[0].size(), many = call.b.shape(at)[0].size();
  if (many > 0 && size > (int64_t{1} << 28) / many)
    call.refuse("it combines more than 2^28 pairs of elements and updates");
  const Shape pairs{many + 1, size};
  const Value own = call.places({many, size}, 1);
  const Value hit =
      call.graph.add("equal", {own, call.b.broadcast(call.b.reshape(at, {many, 1}), {many, size})});
  const Value kept = call.b.broadcast(call.b.reshape(data, {1, size}), {many, size});
  const Value update = call.b.broadcast(call.b.reshape(what, {many, 1}), {many, size});
  const bool product = reduction == "mul";
  const Value parts = call.concat(
      {call.b.reshape(data, {1, size}), call.b.select(hit, update, product ? call.fill(kept, 1) : kept)}, 0);
  if (!product) return call.graph.add(reduction, {parts}, {{"axes", Ints{0}}});
  Value x = parts;
  for (int64_t rows = many + 1; rows > 1; rows = (rows + 1) / 2) {  // by halves
    const auto part = [&](int64_t from, int64_t to) { return call.part(x, 0, from, to); };
    const int64_t half = rows / 2;
    const Value both = call.b.mul(part(0, half), part(half, 2 * half));
    x = rows % 2 == 0 ? both : call.concat({both, part(2 * half, rows)}, 0);
  }
  return call.b.reshape(x, {size});
}

/// Updates at places of the flattened data; `places` i64, of the updates' shape. Where two updates have the
/// same place, without a reduction, the last one counts, as with ONNX Runtime (the standard leaves it open).
Value scattered(onnx::ImportCall& call, Value places, Value updates, const std::string& reduction) {
  const Shape shape = call.shape(0), flat{shape.count()}, many{call.b.shape(places).count()};
  const Value data = call.b.reshape(call[0], flat), at = call.b.reshape(places, many),
              what = call.b.reshape(updates, many);
  const auto added = [&](Value base, Value x) {
    return call.graph.add("scatter_add", {base, at, x}, {{"axis", int64_t{0}}});
  };
  if (reduction == "add") return call.b.reshape(added(data, what), shape);
  if (reduction != "none") return call.b.reshape(combined(call, data, at, what, reduction), shape);
  // scatter_rows takes the first of equal places.
  const int64_t count = many.count();
  const Value turned = call.b.sub(call.scalar(i64, static_cast<double>(count - 1)), call.places(many, 0));
  const Value written =
      call.graph.add("scatter_rows", {data, call.gather(at, turned, 0), call.gather(what, turned, 0)});
  return call.b.reshape(written, shape);
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
    const auto at = static_cast<int64_t>(d);
    const Value column = call.b.reshape(call.part(call[1], std::ssize(places) - 1, at, at + 1), rows);
    flat =
        call.b.add(flat, call.b.mul(counted_from_front(call, column, sizes[d]), static_cast<double>(stride)));
    stride *= sizes[d];
  }
  whole.emplace_back(inner);
  Shape one = rows;
  one.emplace_back(1);
  const Value within = call.places(whole, -1);
  return {scattered(call, call.b.add(call.b.reshape(flat, one), within), call.b.reshape(call[2], whole),
                    call.text("reduction", "none"))};
}
