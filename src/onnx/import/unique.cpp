#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

/// The slices along an axis (or elements) that differ. What it looks at must be known: nothing bounds its
/// results but the whole.
MILLRACE_ONNX_IMPORT(Unique) {
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
