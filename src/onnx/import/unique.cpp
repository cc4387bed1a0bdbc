#include "onnx/import/bounded.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;

/// The slices along an axis (or elements) that differ: all pairs of them are compared.
MILLRACE_ONNX_IMPORT(Unique) {
  ops::Build& b = call.b;
  const bool whole = !call.has("axis"), sorted = call.integer("sorted", 1) != 0;
  const Item& item = call.item(0);
  const Shape shape = b.shape(call.buffer(0));
  const int64_t axis = whole ? 0 : call.axis(call.integer("axis"), shape.rank());
  const auto at = static_cast<size_t>(axis);
  if (call.bounded(0) && (whole ? shape.rank() > 1 : item.bounded_axis != axis)) (void)call[0];
  const Value x = whole ? b.reshape(item.value, {shape.count()}) : item.value;
  const int64_t n = b.shape(x)[at].size(), width = n == 0 ? 0 : b.shape(x).count() / n;
  if (n > 0 && (n > (int64_t{1} << 26) / n || width > 64))
    call.refuse("it compares more than 2^26 pairs, or slices of more than 64 elements");
  // [n, width]
  Ints order{axis};
  for (int64_t d = 0; d < b.shape(x).rank(); ++d)
    if (d != axis) order.push_back(d);
  Value rows = b.reshape(b.transpose(x, order), {n, width});
  if (b.dtype(rows).is_bool()) rows = b.cast(rows, u8);
  const Shape pairs{n, n};
  const auto node = [&](std::string_view op, Value u, Value v) { return call.graph.add(op, {u, v}); };
  Value equal = b.broadcast(call.scalar(boolean, 1), pairs),
        less = b.broadcast(call.scalar(boolean, 0), pairs);
  for (int64_t k = width - 1; k >= 0; --k) {  // the first element that differs decides
    const Value column = call.part(rows, 1, k, k + 1);
    const Value own = b.broadcast(column, pairs), other = b.broadcast(b.reshape(column, {1, n}), pairs);
    Value same = node("equal", own, other), before = node("less", other, own);
    if (b.dtype(rows).is_float()) {  // NaNs are equal, and come behind all numbers
      const auto is_nan = [&](Value of) { return call.graph.add("is_nan", {of}); };
      same = node("logical_or", same, node("logical_and", is_nan(own), is_nan(other)));
      before =
          node("logical_or", before, node("greater", b.cast(is_nan(own), u8), b.cast(is_nan(other), u8)));
    }
    less = node("logical_or", before, node("logical_and", same, less));
    equal = node("logical_and", same, equal);
  }
  const auto any = [&](Value of) { return b.cast(b.max(b.cast(of, u8), {1}, false), boolean); };
  const auto many = [&](Value of) { return b.sum(b.cast(of, i64), {1}, false); };
  const Value before = node("less", call.places(pairs, 1), call.places(pairs, 0));
  Value first = call.graph.add("logical_not", {any(node("logical_and", equal, before))});
  if (call.bounded(0)) first = onnx::masked(call, first, 0, item.size, 0);
  const Value firsts = b.broadcast(b.reshape(first, {1, n}), pairs);  // by their second number
  // How many different ones come before each; those that are equal to an earlier one take its number.
  Value rank = many(node("logical_and", sorted ? less : before, firsts));
  if (!sorted) {
    const Value earlier =
        call.graph.add("argmax", {b.cast(equal, u8)}, {{"axes", Ints{1}}, {"keep_dims", false}});
    rank = call.gather(rank, earlier, 0);
  }
  const Value own = call.places({n}, 0);
  const Value nowhere = call.fill(own, static_cast<double>(n)), none = call.fill(own, 0);
  const auto put = [&](Value where, Value what) {
    return call.graph.add("scatter_add", {none, where, what}, {{"axis", int64_t{0}}});
  };
  const Value indices = put(b.select(first, rank, nowhere), own);
  const Value all = call.bounded(0) ? b.select(onnx::counts(call, {n}, 0, item.size), rank, nowhere) : rank;
  const Value size = b.sum(b.cast(first, i64), {0}, false);
  const Value found = call.gather(x, indices, axis);
  return {Item::bounded(found, static_cast<int>(axis), size), Item::bounded(indices, 0, size),
          call.bounded(0) ? Item::bounded(rank, 0, item.size) : Item(rank),
          Item::bounded(put(all, call.fill(own, 1)), 0, size)};
}
