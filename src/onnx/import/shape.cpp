#include <algorithm>
#include <memory>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;

// Of a tensor of which one size depends on data the others are known, and that one is between bounds.

MILLRACE_ONNX_IMPORT(Shape) {
  const Ints sizes = call.b.shape(call.buffer(0)).sizes();
  const auto rank = static_cast<int64_t>(sizes.size());
  const auto clip = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t from = clip(call.integer("start", 0)), to = std::max(from, clip(call.integer("end", rank)));
  const Ints most(sizes.begin() + from, sizes.begin() + to);
  if (!call.bounded(0) || most.empty()) return {call.ints_constant(most)};
  Array least = Array(i64, {to - from}), largest = least.clone();
  std::vector<Value> parts;
  for (int64_t d = from; d < to; ++d) {
    parts.push_back(call.b.reshape(call.true_size(0, d), {1}));
    largest.set_int(d - from, sizes[static_cast<size_t>(d)]);
    least.set_int(d - from, d == call.item(0).bounded_axis ? 0 : sizes[static_cast<size_t>(d)]);
  }
  Item result = call.concat(parts, 0);
  result.between = std::make_shared<const Item::Between>(least, largest);
  return {result};
}

MILLRACE_ONNX_IMPORT(Size) {
  const Shape shape = call.b.shape(call.buffer(0));
  if (!call.bounded(0)) return {call.whole(shape.count())};
  int64_t others = 1;
  for (int d = 0; d < shape.rank(); ++d)
    if (d != call.item(0).bounded_axis) others *= shape[static_cast<size_t>(d)].size();
  Item result = call.b.mul(call.item(0).size, static_cast<double>(others));
  result.between = std::make_shared<const Item::Between>(
      Array::scalar(i64, 0), Array::scalar(i64, static_cast<double>(shape.count())));
  return {result};
}
