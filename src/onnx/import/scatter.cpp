#include "onnx/import/places.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// The product of each element of `data` and its updates, each of which is compared with all.
Value multiplied(onnx::ImportCall& call, Value data, Value at, Value what) {
  const int64_t size = call.b.shape(data)[0].size(), many = call.b.shape(at)[0].size();
  if (many > 0 && size > (int64_t{1} << 28) / many)
    call.refuse("it multiplies more than 2^28 pairs of elements and updates");
  const Value own = call.places({many, size}, 1);
  const Value hit =
      call.graph.add("equal", {own, call.b.broadcast(call.b.reshape(at, {many, 1}), {many, size})});
  const Value update = call.b.broadcast(call.b.reshape(what, {many, 1}), {many, size});
  Value x =
      call.concat({call.b.reshape(data, {1, size}), call.b.select(hit, update, call.fill(update, 1))}, 0);
  for (int64_t rows = many + 1; rows > 1; rows = (rows + 1) / 2) {  // by halves
    const auto part = [&](int64_t from, int64_t to) { return call.part(x, 0, from, to); };
    const int64_t half = rows / 2;
    const Value both = call.b.mul(part(0, half), part(half, 2 * half));
    x = rows % 2 == 0 ? both : call.concat({both, part(2 * half, rows)}, 0);
  }
  return call.b.reshape(x, {size});
}

/// Updates of the data's rows of `width` elements, as `rows`, i64 [updates], says. Where two updates have the
/// same row, without a reduction, the last one counts, as with ONNX Runtime (the standard leaves it open).
Value scattered(onnx::ImportCall& call, Value rows, Value updates, int64_t width,
                const std::string& reduction) {
  const Shape shape = call.shape(0);
  const int64_t many = call.b.shape(rows)[0].size(), all = shape.count();
  const bool by_rows = width > 1 && (reduction == "add" || reduction == "none");
  Value data = call.b.reshape(call[0], {all}), at = rows, what = call.b.reshape(updates, {many * width});
  if (by_rows) {
    data = call.b.reshape(data, {all / width, width});
    what = call.b.reshape(what, {many, width});
  } else if (width != 1) {
    const Shape each{many, width};
    const Value first = call.b.reshape(call.b.mul(rows, static_cast<double>(width)), {many, 1});
    at = call.b.reshape(call.b.add(call.b.broadcast(first, each), call.places(each, 1)), {many * width});
  }
  if (reduction == "add")
    return call.b.reshape(call.graph.add("scatter_add", {data, at, what}, {{"axis", int64_t{0}}}), shape);
  if (reduction == "max" || reduction == "min") {
    const Attributes attributes{{"least", reduction == "min"}};
    return call.b.reshape(call.graph.add("scatter_extreme", {data, at, what}, attributes), shape);
  }
  if (reduction == "mul") return call.b.reshape(multiplied(call, data, at, what), shape);
  if (reduction != "none") call.refuse("the reduction '" + reduction + "' is not known");
  // scatter_rows takes the first of equal places.
  const Shape list = call.b.shape(at);
  const Value turned =
      call.b.sub(call.scalar(i64, static_cast<double>(list[0].size() - 1)), call.places(list, 0));
  const Value written =
      call.graph.add("scatter_rows", {data, call.gather(at, turned, 0), call.gather(what, turned, 0)});
  return call.b.reshape(written, shape);
}

/// The indices along an axis: one of the columns of an array, or all of one.
struct Column {
  const Array* array;
  int64_t first, step;
  int64_t operator[](int64_t row) const { return array->int_at(row * step + first); }
};

/// The columns of indices [rows …, depth] that are known, as a whole or column by column.
std::optional<std::vector<Column>> columns_of(const onnx::ImportCall& call, int64_t depth) {
  std::vector<Column> columns;
  if (const Array* const all = call.known(1)) {
    for (int64_t d = 0; d < depth; ++d) columns.push_back({all, d, depth});
    return columns;
  }
  // As many columns as operands of one column each: only to join them makes that.
  const Node& node = call.graph.node(call[1]);
  if (depth < 2 || std::ssize(node.operands) != depth) return std::nullopt;
  for (const Value& operand : node.operands) {
    const Array* const one = call.graph.constant_value(operand);
    if (!one || one->shape().back() != 1) return std::nullopt;
    columns.push_back({one, 0, 1});
  }
  return columns;
}

/// Where indices [rows …, depth] begin that are neighbours along each of the first `depth` axes of data: what
/// exporters write for x[:, 2:5] = y. nullopt: they are others.
std::optional<Ints> begin_of_block(const onnx::ImportCall& call) {
  const Ints sizes = call.shape(0).sizes(), shape = call.shape(1).sizes();
  const auto depth = static_cast<size_t>(shape.back());
  if (shape.size() != depth + 1 || call.shape(1).count() == 0) return std::nullopt;
  const auto columns = columns_of(call, shape.back());
  if (!columns) return std::nullopt;
  const auto at = [&](int64_t row, size_t d) {
    const int64_t place = (*columns)[d][row];
    return place < 0 ? place + sizes[d] : place;
  };
  Ints begin, place(depth, 0);
  for (size_t d = 0; d < depth; ++d) {
    begin.push_back(at(0, d));
    if (begin[d] < 0 || begin[d] + shape[d] > sizes[d]) return std::nullopt;
  }
  for (int64_t row = 0; row < call.shape(1).count() / shape.back(); ++row) {
    for (size_t d = 0; d < depth; ++d)
      if (at(row, d) != begin[d] + place[d]) return std::nullopt;
    for (size_t d = depth; d-- > 0 && ++place[d] == shape[d];) place[d] = 0;
  }
  return begin;
}

/// Updates in place of a block of the data, or added to it.
Value with_block(onnx::ImportCall& call, const Ints& begin, const Ints& rows, bool add) {
  const Shape& shape = call.shape(0);
  Shape own = shape;
  Ints low(shape.size(), 0), high = low;
  std::optional<Value> inside;
  for (size_t d = 0; d < begin.size(); ++d) {
    const int64_t size = shape[d].size();
    own[d] = rows[d];
    low[d] = begin[d];
    high[d] = size - begin[d] - rows[d];
    if (rows[d] == size) continue;
    Array there(boolean, {size});
    for (int64_t i = 0; i < size; ++i) there.set(i, i >= begin[d] && i < begin[d] + rows[d]);
    Shape along(Ints(shape.size(), 1));
    along[d] = size;
    const Value one = call.b.broadcast(call.constant(there.reshaped(along)), shape);
    inside = inside ? call.graph.add("logical_and", {*inside, one}) : one;
  }
  const Value updates = call.b.reshape(call[2], own);
  const Value all = call.graph.add("pad", {updates}, {{"low", low}, {"high", high}});
  if (add) return call.b.add(call[0], all);
  return inside ? call.b.select(*inside, all, call[0]) : updates;
}

std::vector<Value> elements(onnx::ImportCall& call) {
  const Value places = places_of_elements(call, call.axis(call.integer("axis", 0), call.rank(0)));
  const Value flat = call.b.reshape(places, {call.b.shape(places).count()});
  return {scattered(call, flat, call[2], 1, call.text("reduction", "none"))};
}

}  // namespace

MILLRACE_ONNX_IMPORT(ScatterElements) { return elements(call); }
MILLRACE_ONNX_IMPORT(Scatter) { return elements(call); }

MILLRACE_ONNX_IMPORT(ScatterND) {
  const Ints sizes = call.shape(0).sizes(), places = call.shape(1).sizes();
  if (places.empty() || places.back() > static_cast<int64_t>(sizes.size()))
    call.refuse("its indices do not fit its data");
  const auto depth = static_cast<size_t>(places.back());
  const std::string reduction = call.text("reduction", "none");
  if (reduction == "none" || reduction == "add")
    if (const auto begin = begin_of_block(call))
      return {with_block(call, *begin, places, reduction == "add")};
  const Shape rows(Ints(places.begin(), places.end() - 1));
  int64_t width = 1, stride = 1;
  for (size_t d = depth; d < sizes.size(); ++d) width *= sizes[d];
  Value row = call.b.broadcast(call.scalar(i64, 0), rows);
  for (size_t d = depth; d-- > 0;) {
    const auto at = static_cast<int64_t>(d);
    const Value column = call.b.reshape(call.part(call[1], std::ssize(places) - 1, at, at + 1), rows);
    row =
        call.b.add(row, call.b.mul(counted_from_front(call, column, sizes[d]), static_cast<double>(stride)));
    stride *= sizes[d];
  }
  return {scattered(call, call.b.reshape(row, {rows.count()}), call[2], width, reduction)};
}
