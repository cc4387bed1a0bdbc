#include <algorithm>
#include <limits>

#include "onnx/import/windows.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// With ceil_mode more is padded behind, so that the last window is whole; it must begin inside. How much
/// that is, for each dimension. A first window that is larger than all there is ends where that does: nothing
/// behind it counts.
Ints round_up(const onnx::ImportCall& call, onnx::Windows& w) {
  const auto dims = static_cast<size_t>(w.dims);
  Ints added(dims, 0);
  if (call.integer("ceil_mode", 0) == 0) return added;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t size = call.shape(0)[d + 2].size(), all = size + w.pads[d] + w.pads[d + dims];
    const int64_t short_of = w.extent(d) - all;
    if (short_of > 0 && short_of < w.strides[d] && all > 0) w.kernel[d] = (all - 1) / w.dilations[d] + 1;
    const int64_t free = all - w.extent(d), over = free % w.strides[d];
    if (over > 0 && free - over + w.strides[d] < size + w.pads[d]) added[d] = w.strides[d] - over;
    w.pads[d + dims] += added[d];
  }
  return added;
}

/// Whether our operators of two dimensions have such windows.
bool is_plain(const onnx::Windows& w) {
  const auto dims = static_cast<size_t>(w.dims);
  for (size_t d = 0; d < dims; ++d)
    if (w.dilations[d] != 1 || w.pads[d] >= w.kernel[d] || w.pads[d + dims] >= w.kernel[d]) return false;
  return w.dims <= 2;
}

/// Is there one window, of all that there is?
bool is_all(const onnx::ImportCall& call, const onnx::Windows& w) {
  const auto dims = static_cast<size_t>(w.dims);
  for (size_t d = 0; d < dims; ++d)
    if (w.dilations[d] != 1 || w.pads[d] != 0 || w.pads[d + dims] != 0 ||
        call.shape(0)[d + 2] != Dim(w.kernel[d]))
      return false;
  return true;
}

/// The parts of a padded picture that all windows have at one of their places, place after place.
template <typename Take>
void each_place(onnx::ImportCall& call, const std::vector<Value>& padded, const onnx::Windows& w,
                const Take& take) {
  const auto dims = static_cast<size_t>(w.dims);
  const Ints sizes = call.b.shape(padded[0]).sizes();
  Ints place(dims, 0);
  while (true) {
    std::vector<Value> parts;
    for (const Value x : padded) {
      Ints starts(dims + 2, 0), ends = call.b.shape(x).sizes(), steps(dims + 2, 1);
      for (size_t d = 0; d < dims; ++d) {
        if (sizes[d + 2] < w.extent(d)) call.refuse("its window is larger than what it looks at");
        const int64_t count = (sizes[d + 2] - w.extent(d)) / w.strides[d] + 1;
        starts[d + 2] = place[d] * w.dilations[d];
        ends[d + 2] = starts[d + 2] + (count - 1) * w.strides[d] + 1;
        steps[d + 2] = w.strides[d];
      }
      parts.push_back(call.graph.add("slice", {x}, {{"starts", starts}, {"ends", ends}, {"steps", steps}}));
    }
    take(parts);
    size_t d = dims;
    while (d > 0 && ++place[d - 1] == w.kernel[d - 1]) place[--d] = 0;
    if (d == 0) return;
  }
}

/// Windows put together by `op`, one dimension after the other: as many places as the sides of a window have
/// together, not their product. (Sums, and what each of equal maxima gets of a gradient, are rounded in that
/// order.)
Value gathered(onnx::ImportCall& call, Value x, const onnx::Windows& w, std::string_view op, double outside) {
  const auto dims = static_cast<size_t>(w.dims);
  Value result = padded(call, x, w, outside);
  for (size_t d = 0; d < dims; ++d) {
    onnx::Windows along = w;
    along.kernel.assign(dims, 1);
    along.strides.assign(dims, 1);
    along.kernel[d] = w.kernel[d];
    along.strides[d] = w.strides[d];
    Value sum;
    each_place(call, {result}, along, [&](const std::vector<Value>& parts) {
      sum = sum.valid() ? call.b.binary(op, sum, parts[0]) : parts[0];
    });
    result = sum;
  }
  return result;
}

/// The largest of each window and where it lies in the whole input, flattened.
std::vector<Value> with_positions(onnx::ImportCall& call, const onnx::Windows& w) {
  const auto dims = static_cast<size_t>(w.dims);
  const Ints sizes = call.shape(0).sizes();
  Ints one(dims + 2, 1);
  int64_t plane = 1;
  for (size_t d = 0; d < dims; ++d) {
    one[d + 2] = sizes[d + 2];
    plane *= sizes[d + 2];
  }
  const bool columns_first = call.integer("storage_order", 0) != 0;
  Array within(i64, Shape(one));
  for (int64_t i = 0; i < plane; ++i) {
    int64_t rest = i, at = 0;
    Ints place(dims, 0);
    for (size_t d = dims; d-- > 0; rest /= sizes[d + 2]) place[d] = rest % sizes[d + 2];
    for (size_t d = 0; d < dims; ++d) {
      const size_t axis = columns_first ? dims - 1 - d : d;
      at = at * sizes[axis + 2] + place[axis];
    }
    within.set_int(i, at);
  }
  const DType dtype = call.dtype(0), wide = dtype.is_float() ? dtype : f64;
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  const Value x = padded(call, call.b.cast(call[0], wide), w, lowest);
  const Value places = padded(call, call.constant(within), w);
  Value best, at;
  each_place(call, {x, places}, w, [&](const std::vector<Value>& parts) {
    const Value here = call.b.broadcast(parts[1], call.b.shape(parts[0]));
    if (!best.valid()) {
      best = parts[0];
      at = here;
      return;
    }
    const Value larger = call.graph.add("greater", {parts[0], best});
    best = call.b.select(larger, parts[0], best);
    at = call.b.select(larger, here, at);
  });
  const Value number = call.places({sizes[0] * sizes[1]}, 0);
  Shape channel(dims + 2, Dim(1));
  channel[0] = sizes[0];
  channel[1] = sizes[1];
  return {call.b.cast(best, dtype),
          call.b.add(at, call.b.mul(call.b.reshape(number, channel), static_cast<double>(plane)))};
}

Value two(onnx::ImportCall& call, std::string_view op, Value x, const onnx::Windows& of,
          Attributes attributes = {}) {
  const onnx::Windows w = as_two(of);
  attributes.set("kernel", w.kernel);
  attributes.set("strides", w.strides);
  attributes.set("pads", w.pads);
  return as_it_was(call, call.graph.add(op, {two_dimensional(call, x, of)}, attributes), of);
}

/// How many elements each window has: of the picture, with `with_pads` of what the model pads, too.
Value counts(onnx::ImportCall& call, const onnx::Windows& w, const Ints& added, bool with_pads) {
  const auto dims = static_cast<size_t>(w.dims);
  Value ones = call.b.broadcast(call.scalar(call.dtype(0), 1), Shape(call.shape(0)));
  onnx::Windows inner = w;
  if (with_pads) {
    onnx::Windows given = w;
    for (size_t d = 0; d < dims; ++d) {
      given.pads[d + dims] -= added[d];
      inner.pads[d] = 0;
      inner.pads[d + dims] = added[d];
    }
    ones = padded(call, ones, given, 1);
  }
  return gathered(call, ones, inner, "add", 0);
}

Value of_all_positions(onnx::ImportCall& call, std::string_view op, Value x) {
  const Ints axes = onnx::numbered(2, call.rank(0));
  return axes.empty() ? x : call.graph.add(op, {x}, {{"axes", axes}, {"keep_dims", true}});
}

Value power(onnx::ImportCall& call, Value x, double exponent) {
  return call.graph.add("pow", {x, call.fill(x, exponent)});
}

}  // namespace

MILLRACE_ONNX_IMPORT(MaxPool) {
  onnx::Windows w = windows_of(call, call.ints("kernel_shape"));
  round_up(call, w);
  const DType dtype = call.dtype(0);
  if (call.node.outputs.size() > 1 && !call.node.outputs[1].empty()) return with_positions(call, w);
  const Value x = dtype.is_float() ? call[0] : call.b.cast(call[0], f32);
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  const Value y =
      is_plain(w) ? two(call, "max_pool2d_values", x, w) : gathered(call, x, w, "maximum", lowest);
  return {call.b.cast(y, dtype)};
}

MILLRACE_ONNX_IMPORT(AveragePool) {
  onnx::Windows w = windows_of(call, call.ints("kernel_shape"));
  const bool counted = call.integer("count_include_pad", 0) != 0;
  const Ints added = round_up(call, w);
  const bool rounds = std::any_of(added.begin(), added.end(), [](int64_t each) { return each > 0; });
  if (is_all(call, w)) return {of_all_positions(call, "mean", call[0])};
  if (is_plain(w) && !(counted && rounds))
    return {two(call, "avg_pool2d", call[0], w, {{"count_include_pad", counted}})};
  return {call.b.div(gathered(call, call[0], w, "add", 0), counts(call, w, added, counted))};
}

MILLRACE_ONNX_IMPORT(LpPool) {
  onnx::Windows w = windows_of(call, call.ints("kernel_shape"));
  round_up(call, w);
  const auto p = static_cast<double>(call.integer("p", 2));
  const Value powers = power(call, call.graph.add("abs", {call[0]}), p);
  return {power(call, gathered(call, powers, w, "add", 0), 1 / p)};
}

MILLRACE_ONNX_IMPORT(GlobalAveragePool) { return {of_all_positions(call, "mean", call[0])}; }
MILLRACE_ONNX_IMPORT(GlobalMaxPool) { return {of_all_positions(call, "max", call[0])}; }
MILLRACE_ONNX_IMPORT(GlobalLpPool) {
  const auto p = static_cast<double>(call.integer("p", 2));
  const Value powers = power(call, call.graph.add("abs", {call[0]}), p);
  return {power(call, of_all_positions(call, "sum", powers), 1 / p)};
}
