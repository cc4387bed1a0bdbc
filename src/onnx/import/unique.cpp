#include <algorithm>
#include <cstring>
#include <numeric>

#include "onnx/import/bounded.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;

namespace {

/// What the model is given: all pairs of slices are compared.
onnx::Items unique_at_run_time(onnx::ImportCall& call) {
  ops::Build& b = call.b;
  const bool whole = !call.has("axis"), sorted = call.integer("sorted", 1) != 0;
  const Item& item = call.item(0);
  const Shape shape = call.graph.type(item.value).shape;
  const int64_t axis = whole ? 0 : call.axis(call.integer("axis"), shape.rank());
  const auto at = static_cast<size_t>(axis);
  if (call.bounded(0) && (whole ? shape.rank() > 1 : item.bounded_axis != axis)) (void)call[0];
  const Value x = whole ? b.reshape(item.value, {shape.count()}) : item.value;
  const int64_t n = b.shape(x)[at].size(), width = n == 0 ? 0 : b.shape(x).count() / n;
  if (n > 0 && (n > (int64_t{1} << 26) / n || width > 64))
    call.refuse("it compares more than 2^26 pairs, or slices of more than 64 elements");
  // [width, n]
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
    const Value same = node("equal", own, other);
    less = node("logical_or", node("less", other, own), node("logical_and", same, less));
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

}  // namespace

/// The slices along an axis (or elements) that differ.
MILLRACE_ONNX_IMPORT(Unique) {
  if (call.item(0).form == Item::Form::tensor && (call.bounded(0) || !call.known(0)))
    return unique_at_run_time(call);
  const Array& x = call.known_array(0);
  const Ints shape = x.shape().sizes();
  const bool whole = !call.has("axis"), sorted = call.integer("sorted", 1) != 0;
  const auto axis = static_cast<size_t>(whole ? 0 : call.axis(call.integer("axis"), call.rank(0)));
  int64_t outer = 1, inner = 1;
  const int64_t size = whole ? x.count() : shape[axis];
  for (size_t d = 0; d < shape.size() && !whole; ++d) (d < axis ? outer : inner) *= d == axis ? 1 : shape[d];
  const auto place = [&](int64_t slice, int64_t k) { return (k / inner * size + slice) * inner + k % inner; };
  const int64_t elements = outer * inner;
  const bool is_float = x.dtype().is_float();
  const auto compare = [&](int64_t a, int64_t b) {  // −1, 0, 1
    for (int64_t k = 0; k < elements; ++k) {
      if (is_float) {
        const double u = x.at(place(a, k)), v = x.at(place(b, k));
        if (u != v) return u < v ? -1 : 1;
      } else if (const int64_t u = x.int_at(place(a, k)), v = x.int_at(place(b, k)); u != v) {
        return u < v ? -1 : 1;
      }
    }
    return 0;
  };
  Ints order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  Ints first, group(static_cast<size_t>(size)), counts;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      first.push_back(order[i]);
      counts.push_back(0);
    }
    group[static_cast<size_t>(order[i])] = static_cast<int64_t>(first.size()) - 1;
    ++counts.back();
  }
  if (!sorted) {  // in the order in which they come
    Ints rank(first.size()), back(first.size());
    std::iota(rank.begin(), rank.end(), 0);
    std::sort(rank.begin(), rank.end(), [&](int64_t a, int64_t b) {
      return first[static_cast<size_t>(a)] < first[static_cast<size_t>(b)];
    });
    Ints by_first, by_counts;
    for (size_t i = 0; i < rank.size(); ++i) {
      back[static_cast<size_t>(rank[i])] = static_cast<int64_t>(i);
      by_first.push_back(first[static_cast<size_t>(rank[i])]);
      by_counts.push_back(counts[static_cast<size_t>(rank[i])]);
    }
    first = by_first;
    counts = by_counts;
    for (int64_t& each : group) each = back[static_cast<size_t>(each)];
  }
  Ints to = whole ? Ints{static_cast<int64_t>(first.size())} : shape;
  if (!whole) to[axis] = static_cast<int64_t>(first.size());
  Array y(x.dtype(), Shape(to));
  const auto bytes = static_cast<size_t>(x.dtype().bytes());
  for (size_t i = 0; i < first.size(); ++i)
    for (int64_t k = 0; k < elements; ++k) {
      const int64_t at =
          (k / inner * static_cast<int64_t>(first.size()) + static_cast<int64_t>(i)) * inner + k % inner;
      std::memcpy(static_cast<char*>(y.data()) + static_cast<size_t>(at) * bytes,
                  static_cast<const char*>(x.data()) + static_cast<size_t>(place(first[i], k)) * bytes,
                  bytes);
    }
  return {call.constant(y), call.ints_constant(first), call.ints_constant(group), call.ints_constant(counts)};
}
