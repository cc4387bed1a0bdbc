#include "onnx/import/sampling.h"

namespace millrace::onnx {
namespace {

/// Thrown back at the borders until it is inside.
Value reflected(ImportCall& call, Value x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return call.fill(x, low);
  const Value below = call.compare("less", x, low);
  const Value over = call.b.select(below, call.b.sub(call.fill(x, low), x), call.b.sub(x, high));
  const Value times = call.graph.add("floor", {call.b.div(over, range)});
  const Value rest = call.b.sub(over, call.b.mul(times, range));
  const Value half = call.b.mul(times, 0.5);
  const Value even = call.graph.add("equal", {half, call.graph.add("floor", {half})});
  // An even number of throws ends at the side that x is beyond.
  const Value at_low = call.graph.add("equal", {even, below});
  const Value inside = call.b.select(at_low, call.b.add(rest, low), call.b.sub(call.fill(x, high), rest));
  const Value beyond = call.graph.add("logical_or", {below, call.compare("greater", x, high)});
  return call.b.select(beyond, inside, x);
}

struct SampledAxis {
  int64_t size;
  double low, high;  // where reflections happen
};

/// Where x lies outside, it is put inside as the operator asks for. Of cubes with borders only the neighbours
/// are, as PyTorch and ONNX Runtime have it (ONNX's reference puts x there first).
Value put_inside(ImportCall& call, Value x, const SampledAxis& axis, const Sampling& sampling) {
  const Outside outside = sampling.outside;
  if (outside == Outside::zeros) return x;
  if (outside == Outside::border && sampling.between == Between::cubic) return x;
  if (outside == Outside::reflection) return reflected(call, x, axis.low, axis.high);
  const Value beyond = call.graph.add(
      "logical_or", {call.compare("less", x, axis.low), call.compare("greater", x, axis.high)});
  return call.b.select(beyond, call.clamp(x, 0, static_cast<double>(axis.size - 1)), x);
}

/// One element of the neighbourhood along an axis.
struct Neighbour {
  Value index, weight;  // weight: not valid is 1
  Value inside;         // not valid: always
};

/// The cubic of Keys, with ONNX's −0.75, for a distance of `far` elements and `t` of one.
Value cubic_weight(ImportCall& call, Value t, int k) {
  constexpr double a = -0.75;
  const auto polynomial = [&](Value x, double c3, double c2, double c1, double c0) {
    return call.b.add(call.b.mul(call.b.add(call.b.mul(call.b.add(call.b.mul(x, c3), c2), x), c1), x), c0);
  };
  const Value rest = call.b.sub(call.fill(t, 1), t);
  if (k == 0) return polynomial(call.b.add(t, 1), a, -5 * a, 8 * a, -4 * a);
  if (k == 1) return polynomial(t, a + 2, -(a + 3), 0, 1);
  if (k == 2) return polynomial(rest, a + 2, -(a + 3), 0, 1);
  return polynomial(call.b.add(rest, 1), a, -5 * a, 8 * a, -4 * a);
}

std::vector<Neighbour> neighbours(ImportCall& call, Value x, const SampledAxis& axis,
                                  const Sampling& sampling) {
  std::vector<Neighbour> list;
  const int count = sampling.between == Between::nearest ? 1 : sampling.between == Between::linear ? 2 : 4;
  const Value first = count == 1 ? x : call.graph.add("floor", {x});
  const Value t = call.b.sub(x, first);
  for (int k = 0; k < count; ++k) {
    Neighbour one;
    Value at = call.b.add(first, count == 4 ? k - 1 : k);
    if (count == 2) one.weight = k == 0 ? call.b.sub(call.fill(t, 1), t) : t;
    if (count == 4) one.weight = cubic_weight(call, t, k);
    if (sampling.outside == Outside::zeros)
      one.inside = call.graph.add("logical_and", {call.compare("greater_equal", at, 0),
                                                  call.compare("less", at, static_cast<double>(axis.size))});
    if (sampling.outside == Outside::reflection)
      at = call.graph.add("trunc", {reflected(call, at, axis.low, axis.high)});
    one.index = call.b.cast(call.clamp(at, 0, static_cast<double>(axis.size - 1)), i64);
    list.push_back(one);
  }
  return list;
}

}  // namespace

Value picked(ImportCall& call, Value x, Value indices, Value samples) {
  const Ints sizes = call.b.shape(x).sizes();
  const int64_t many = call.b.shape(indices)[0].size(), places = call.b.shape(indices)[1].size();
  const Shape to{many, sizes[1], places}, rows{many, sizes[1]};
  if (!samples.valid()) samples = call.places({many}, 0);
  const Value first = call.b.mul(call.b.reshape(samples, {many, 1}), static_cast<double>(sizes[1]));
  const Value row = call.b.add(call.b.broadcast(first, rows), call.places(rows, 1));
  const Value flat =
      call.b.add(call.b.mul(call.b.reshape(row, {many, sizes[1], 1}), static_cast<double>(sizes[2])),
                 call.b.broadcast(call.b.reshape(indices, {many, 1, places}), to));
  return call.gather(call.b.reshape(x, {sizes[0] * sizes[1] * sizes[2]}), flat, 0);
}

Value sampled(ImportCall& call, Value x, const std::vector<Value>& at, const Sampling& sampling) {
  const Ints sizes = call.b.shape(x).sizes();
  const size_t dims = sizes.size() - 2;
  if (at.size() != dims || dims > 3) call.refuse("pictures of 1, 2 and 3 dimensions are known");
  std::vector<std::vector<Neighbour>> around;
  int64_t all = 1, combinations = 1;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t size = sizes[d + 2];
    if (size < 1) call.refuse("its picture is empty");
    const double edge = sampling.align_corners ? 0 : 0.5;
    const SampledAxis axis{size, -edge, static_cast<double>(size) - 1 + edge};
    around.push_back(neighbours(call, put_inside(call, at[d], axis, sampling), axis, sampling));
    all *= size;
    combinations *= static_cast<int64_t>(around.back().size());
  }
  const Value flat = call.b.reshape(x, {sizes[0], sizes[1], all});
  Value total;
  for (int64_t c = 0; c < combinations; ++c) {
    Value index, weight, inside;
    int64_t rest = c, stride = all;
    for (size_t d = 0; d < dims; ++d) {
      const auto count = static_cast<int64_t>(around[d].size());
      const Neighbour& one = around[d][static_cast<size_t>(rest % count)];
      rest /= count;
      stride /= sizes[d + 2];
      const Value part = call.b.mul(one.index, static_cast<double>(stride));
      index = index.valid() ? call.b.add(index, part) : part;
      if (one.weight.valid()) weight = weight.valid() ? call.b.mul(weight, one.weight) : one.weight;
      if (one.inside.valid())
        inside = inside.valid() ? call.graph.add("logical_and", {inside, one.inside}) : one.inside;
    }
    Value value = picked(call, flat, index);
    const Shape shape = call.b.shape(value), one_channel{shape[0], 1, shape[2]};
    const auto for_all = [&](Value v) { return call.b.broadcast(call.b.reshape(v, one_channel), shape); };
    if (inside.valid()) value = call.b.select(for_all(inside), value, call.fill(value, 0));
    if (weight.valid()) value = call.b.mul(value, for_all(call.b.cast(weight, call.b.dtype(value))));
    total = total.valid() ? call.b.add(total, value) : value;
  }
  return total;
}

}  // namespace millrace::onnx
