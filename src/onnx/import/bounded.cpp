#include "onnx/import/bounded.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <millrace/tensor.h>

#include "ops/scan.h"

namespace millrace::onnx {
namespace {

int64_t times(ImportCall& call, int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) call.refuse("its sizes are too large");
  return product;
}

/// One position after the other, each with all that lies beside the axis. Floats are wide on the way, since
/// there may be many.
Value one_by_one(ImportCall& call, std::string_view op, Value x, int64_t axis, double neutral, bool reverse) {
  const Shape shape = call.b.shape(x);
  const Dim size = shape[static_cast<size_t>(axis)];
  int64_t before = 1, behind = 1;
  for (int d = 0; d < shape.rank(); ++d)
    if (d != axis) (d < axis ? before : behind) *= shape[static_cast<size_t>(d)].size();
  const Type slice{call.b.dtype(x), {before, behind}};
  const Type sum{slice.dtype.is_float() ? f64 : slice.dtype, slice.shape};
  auto body = std::make_shared<Graph>();
  ops::Build b(*body);
  const Value last = body->input("last", sum), next = body->input("next", slice);
  const Value all = b.binary(op, last, b.cast(next, sum.dtype));
  body->set_outputs({all, b.cast(all, slice.dtype)});
  ops::ScanOperands over;
  over.carries = {call.b.broadcast(call.scalar(sum.dtype, neutral), sum.shape)};
  over.sequences = {call.b.transpose(call.b.reshape(x, {before, size, behind}), {1, 0, 2})};
  over.length = size;
  over.reverse = reverse;
  const Value rows{ops::add_scan(call.graph, over, std::move(body)).node, 1};
  return call.b.reshape(call.b.transpose(rows, {1, 0, 2}), shape);
}

}  // namespace

/// With those 1, 2, 4 … away. A loop, so that the graph is the same for all sizes.
Value running(ImportCall& call, std::string_view op, Value x, int64_t axis, double neutral, bool reverse) {
  const int64_t size = call.b.shape(x)[static_cast<size_t>(axis)].size();
  if (size <= 1) return x;
  constexpr int64_t wide = 32;  // a step is worth its while
  int64_t behind = 1;
  for (auto d = static_cast<size_t>(axis) + 1; d < call.b.shape(x).size(); ++d)
    behind *= call.b.shape(x)[d].size();
  if (behind >= wide) return one_by_one(call, op, x, axis, neutral, reverse);
  auto body = std::make_shared<Graph>();
  ops::Build b(*body);
  body->input("going", {boolean, {}});
  const Value by = body->input("by", {i64, {}}), sum = body->input("sum", call.graph.type(x));
  const Value own = body->add("iota", {}, {{"shape", Shape{size}}, {"axis", int64_t{0}}});
  const Value at = reverse ? b.add(own, by) : b.sub(own, by);
  Value other = body->add("gather", {sum, at}, {{"axis", axis}});  // 0 outside
  if (neutral != 0) {
    Shape along(std::vector<int64_t>(call.b.shape(x).size(), 1));
    along[static_cast<size_t>(axis)] = size;
    const Value inside =
        body->add("logical_and", {body->add("greater_equal", {at, b.fill(at, 0)}),
                                  body->add("less", {at, b.fill(at, static_cast<double>(size))})});
    other = b.select(b.reshape(inside, along), other, b.fill(other, neutral));
  }
  const Value further = b.add(by, by);
  body->set_outputs({body->add("less", {further, body->scalar(i64, static_cast<double>(size))}), further,
                     b.binary(op, sum, other)});
  ops::ScanOperands over;
  over.conditional = true;
  over.carries = {call.scalar(boolean, 1), call.whole(1), x};
  over.length = no_limit;
  return {ops::add_scan(call.graph, over, std::move(body)).node, 2};
}

Chosen chosen(ImportCall& call, Value mask) {
  const Value places = call.graph.add("nonzero", {mask});
  return {call.b.reshape(places, call.b.shape(mask)), {places.node, 1}};
}

Value counts(ImportCall& call, const Shape& shape, int64_t axis, Value size) {
  const Value place = call.places(shape, axis);
  return call.graph.add("less", {place, call.b.broadcast(size, shape)});
}

Value masked(ImportCall& call, Value x, int64_t axis, Value size, double value) {
  return call.b.select(counts(call, call.b.shape(x), axis, size), x, call.fill(x, value));
}

double lowest(DType dtype) {
  if (dtype.is_float()) return -INFINITY;
  return dtype.is_bool() || dtype.kind == Kind::unsigned_int ? 0 : -std::ldexp(1.0, dtype.bits - 1);
}

double highest(DType dtype) {
  if (dtype.is_float()) return INFINITY;
  if (dtype.is_bool()) return 1;
  // The largest double within: of 64 bits somewhat less than the largest number.
  const int bits = dtype.kind == Kind::unsigned_int ? dtype.bits : dtype.bits - 1;
  return bits > 53 ? std::ldexp(1.0, bits) - std::ldexp(1.0, bits - 53) : std::ldexp(1.0, bits) - 1;
}

Item joined(ImportCall& call, const std::vector<Value>& parts, const std::vector<Value>& sizes,
            int64_t axis) {
  const Value all = call.concat(parts, axis);
  // What does not count is left out: whoever lies behind it moves to the front.
  Value at = call.places({call.b.shape(all)[static_cast<size_t>(axis)]}, 0), from = at, end = call.whole(0);
  for (size_t i = 0; i < parts.size(); ++i) {
    end = call.b.add(end, sizes[i]);
    const Value room = call.whole(call.b.shape(parts[i])[static_cast<size_t>(axis)].size());
    const Value behind = call.graph.add("greater_equal", {at, call.b.broadcast(end, call.b.shape(at))});
    from = call.b.add(from, call.b.mul(call.b.cast(behind, i64), call.b.sub(room, sizes[i])));
  }
  return Item::bounded(call.gather(all, from, axis), static_cast<int>(axis), end);
}

Item picked(ImportCall& call, Value x, int64_t axis, Value size, const Picked& which) {
  ops::Build& b = call.b;
  const auto less = [&](Value u, Value v) { return call.graph.add("less", {u, v}); };
  const auto clamped = [&](Value u, Value low, Value high) {
    return b.binary("minimum", b.binary("maximum", u, low), high);
  };
  const Value zero = call.whole(0), one = call.whole(1), none = call.whole(-1);
  const auto from_front = [&](Value u) { return b.select(less(u, zero), b.add(u, size), u); };
  Value start = from_front(which.start), end = from_front(which.end), distance;
  if (which.step > 0) {
    start = clamped(start, zero, size);
    end = clamped(end, zero, size);
    distance = b.sub(end, start);
  } else {
    start = clamped(start, zero, b.sub(size, one));
    end = clamped(end, none, b.sub(size, one));
    distance = b.sub(start, end);
  }
  const int64_t by = std::abs(which.step);
  const Value count =
      b.binary("div", b.add(b.binary("maximum", distance, zero), call.whole(by - 1)), call.whole(by));
  const Value at = b.add(b.mul(call.places({which.most}, 0), static_cast<double>(which.step)), start);
  return Item::bounded(call.gather(x, at, axis), static_cast<int>(axis),
                       b.binary("minimum", count, call.whole(which.most)));
}

Item reshaped(ImportCall& call, const Item& item, const ImportCall::Said& said) {
  const Shape have = call.b.shape(item.value);
  const bool copies = call.node.op_type == "Reshape" && call.integer("allowzero", 0) == 0;
  const size_t nowhere = said.most.size();
  Ints wanted = said.most;
  size_t rest = nowhere, open = nowhere;  // what is -1; what depends on data
  int64_t others = 1;
  for (size_t d = 0; d < wanted.size(); ++d) {
    bool depends = !said.known(d);
    if (!depends && wanted[d] == 0 && copies) {
      if (d >= have.size()) call.refuse("it keeps a dimension that is not there");
      wanted[d] = have[d].size();
      depends = item.bounded_axis == static_cast<int>(d);
    }
    if (!depends && wanted[d] == -1) {
      if (rest != nowhere) call.refuse("two of its sizes are -1");
      rest = d;
      continue;
    }
    others = times(call, others, wanted[d]);
    if (!depends) continue;
    if (open != nowhere) call.refuse_two_sizes();
    open = d;
  }
  if (rest != nowhere) wanted[rest] = others == 0 ? 0 : have.count() / others;
  if (item.bounded_axis < 0 && open == nowhere) return call.b.reshape(item.value, Shape(wanted));
  if (open == nowhere) open = rest;
  int64_t wanted_count = 1, before = 1, have_before = 1, inner = 1, have_inner = 1;
  for (const int64_t size : wanted) wanted_count = times(call, wanted_count, size);
  if (item.bounded_axis < 0 || open == nowhere || wanted_count != have.count())
    call.refuse_sizes(
        "how large it is before and behind it, depends on data in ways that are not known to fit");
  const auto axis = static_cast<size_t>(item.bounded_axis);
  for (size_t d = 0; d < wanted.size(); ++d)
    if (d != open) {
      int64_t& part = d < open ? before : inner;
      part = times(call, part, wanted[d]);
    }
  for (size_t d = 0; d < have.size(); ++d)
    if (d != axis) (d < axis ? have_before : have_inner) *= have[d].size();
  const Value whole = call.b.reshape(item.value, Shape(wanted));
  if (before == have_before || have.count() == 0) {
    const Value size = call.b.binary("div", call.b.mul(item.size, call.whole(have_inner)),
                                     call.whole(std::max<int64_t>(inner, 1)));
    return Item::bounded(whole, static_cast<int>(open), size);
  }
  if (before != 1)
    call.refuse_sizes("what it makes of its shape does not begin with the size that depends on data");
  // What counts lies apart: it is put together first.
  const Chosen found =
      chosen(call, call.b.reshape(counts(call, have, item.bounded_axis, item.size), {have.count()}));
  const Value flat = call.gather(call.b.reshape(item.value, {have.count()}), found.order, 0);
  return Item::bounded(call.b.reshape(flat, Shape(wanted)), static_cast<int>(open),
                       call.b.binary("div", found.count, call.whole(std::max<int64_t>(inner, 1))));
}

Item expanded(ImportCall& call, const Item& item, const ImportCall::Said& said) {
  const Shape to = broadcast_shapes(call.b.shape(item.value), Shape(said.most));
  int axis = item.bounded_axis < 0 ? -1 : item.bounded_axis + to.rank() - call.b.shape(item.value).rank();
  Value size = item.size;
  for (size_t i = 0; i < said.most.size(); ++i) {
    const int at = static_cast<int>(i) + to.rank() - static_cast<int>(said.most.size());
    if (said.known(i) || at == axis) continue;  // as large as the tensor is
    if (axis >= 0) call.refuse_two_sizes();
    axis = at;
    size = call.element(said.values, static_cast<int64_t>(i));
  }
  const Value all = call.b.broadcast(item.value, to);
  return axis < 0 ? Item(all) : Item::bounded(all, axis, size);
}

}  // namespace millrace::onnx
