#include <algorithm>
#include <memory>

#include "onnx/import/bounded.h"
#include "ops/scan.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;

namespace {

/// The corners of boxes [batch, boxes, 4]: [4][batch, boxes], top, left, bottom, right.
std::vector<Value> corners_of(onnx::ImportCall& call, const Ints& sizes, bool centres) {
  std::vector<Value> c;
  for (int64_t k = 0; k < 4; ++k)
    c.push_back(call.b.reshape(call.part(call.buffer(0), 2, k, k + 1), {sizes[0], sizes[1]}));
  if (centres) {  // x, y, width, height
    const Value half_width = call.b.mul(c[2], 0.5), half_height = call.b.mul(c[3], 0.5);
    return {call.b.sub(c[1], half_height), call.b.sub(c[0], half_width), call.b.add(c[1], half_height),
            call.b.add(c[0], half_width)};
  }
  const auto low = [&](size_t i, size_t k) { return call.b.binary("minimum", c[i], c[k]); };
  const auto high = [&](size_t i, size_t k) { return call.b.binary("maximum", c[i], c[k]); };
  return {low(0, 2), low(1, 3), high(0, 2), high(1, 3)};
}

/// Of all pairs of boxes, what they share by what they cover, [batch, boxes, boxes].
Value overlaps(onnx::ImportCall& call, const std::vector<Value>& c, int64_t batch, int64_t boxes) {
  const Shape all{batch, boxes, boxes};
  const auto rows = [&](Value x) { return call.b.broadcast(call.b.reshape(x, {batch, boxes, 1}), all); };
  const auto columns = [&](Value x) { return call.b.broadcast(call.b.reshape(x, {batch, 1, boxes}), all); };
  const auto shared = [&](size_t low, size_t high) {
    const Value length = call.b.sub(call.b.binary("minimum", rows(c[high]), columns(c[high])),
                                    call.b.binary("maximum", rows(c[low]), columns(c[low])));
    return call.graph.add("relu", {length});
  };
  const Value both = call.b.mul(shared(0, 2), shared(1, 3));
  const Value area = call.b.mul(call.b.sub(c[2], c[0]), call.b.sub(c[3], c[1]));
  const Value either = call.b.sub(call.b.add(rows(area), columns(area)), both);
  const Value positive = call.compare("greater", either, 0);
  return call.b.select(positive, call.b.div(both, call.b.select(positive, either, call.fill(either, 1))),
                       call.fill(either, 0));
}

}  // namespace

/// Boxes from the best one on, without those that overlap a better one: a loop over the boxes of each class
/// by their scores. The result is as large as it can be, with how much of it counts beside.
MILLRACE_ONNX_IMPORT(NonMaxSuppression) {
  const Ints boxes = call.graph.type(call.buffer(0)).shape.sizes(),
             scores = call.graph.type(call.buffer(1)).shape.sizes();
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2])
    call.refuse("its scores do not fit its boxes");
  const int64_t batch = boxes[0], n = boxes[1], classes = scores[1], groups = batch * classes;
  const onnx::ImportCall::Said said =
      call.given(2) ? call.sizes_said(2) : onnx::ImportCall::Said{{0}, {0}, {}};
  if (said.most.size() != 1) call.refuse("how many boxes there may be is not one number");
  const int64_t most = std::clamp<int64_t>(said.most[0], 0, n);
  if (most == 0 || groups == 0) {
    Array none(i64, {0, 3});
    return {call.constant(none)};
  }
  if (groups > (int64_t{1} << 28) / n / n) call.refuse("it has more than 2^28 pairs of boxes");
  const auto limit = [&](int k, double fallback) {
    return call.given(k) ? call.b.reshape(call.b.cast(call[k], f32), {}) : call.scalar(f32, fallback);
  };
  const Value share = limit(3, 0);
  const Value ranked =
      call.graph.add("top_k", {call.b.reshape(call.b.cast(call.buffer(1), f32), {groups, n})}, {{"k", n}});
  const Value order{ranked.node, 1};  // [groups, n], the best first
  Value candidate = call.b.broadcast(call.scalar(boolean, 1), {groups, n});
  if (call.given(4))
    candidate = call.graph.add("greater", {ranked, call.b.broadcast(limit(4, 0), {groups, n})});
  for (const int k : {0, 1}) {  // boxes that are there
    if (!call.bounded(k)) continue;
    if (call.item(k).bounded_axis != (k == 0 ? 1 : 2)) (void)call[k];
    candidate = call.graph.add(
        "logical_and",
        {candidate, call.graph.add("less", {order, call.b.broadcast(call.item(k).size, {groups, n})})});
  }
  // Overlaps in the order of each class's scores.
  const Value overlap =
      overlaps(call, corners_of(call, boxes, call.integer("center_point_box", 0) != 0), batch, n);
  const Value each_class =
      call.b.reshape(call.b.broadcast(call.b.reshape(overlap, {batch, 1, n * n}), {batch, classes, n * n}),
                     {groups * n * n});
  const Shape pairs{groups, n, n};
  const Value group = call.places(pairs, 0);
  const auto as = [&](const Shape& one) { return call.b.broadcast(call.b.reshape(order, one), pairs); };
  const Value place =
      call.b.add(call.b.mul(call.b.add(call.b.mul(group, static_cast<double>(n)), as({groups, n, 1})),
                            static_cast<double>(n)),
                 as({groups, 1, n}));
  const Value sorted = call.gather(each_class, place, 0);
  const Value covers = call.graph.add("greater", {sorted, call.b.broadcast(share, pairs)});

  // One step a box: is it still there, and whom does it take away?
  auto body = std::make_shared<Graph>();
  ops::Build b(*body);
  const Value gone = body->input("gone", {boolean, {groups, n}}),
              taken = body->input("taken", {i64, {groups}});
  const Value covered = body->input("covers", {boolean, {groups, n}}), is = body->input("is", {boolean, {n}}),
              could = body->input("could", {boolean, {groups}});
  const Value here = b.broadcast(is, {groups, n});
  const Value was = b.cast(b.max(b.cast(body->add("logical_and", {gone, here}), u8), {1}, false), boolean);
  const Value room = said.known()
                         ? body->add("less", {taken, b.fill(taken, static_cast<double>(most))})
                         : body->add("less", {taken, b.broadcast(body->input("most", {i64, {}}), {groups})});
  const Value keep =
      body->add("logical_and", {body->add("logical_and", {could, body->add("logical_not", {was})}), room});
  const Value kept_row = b.broadcast(b.reshape(keep, {groups, 1}), {groups, n});
  body->set_outputs({body->add("logical_or", {gone, body->add("logical_and", {covered, kept_row})}),
                     b.add(taken, b.cast(keep, i64)), keep});
  const Value diagonal = call.graph.add("equal", {call.places({n, n}, 0), call.places({n, n}, 1)});
  std::vector<Value> invariants;
  if (!said.known()) invariants.push_back(call.element(said.values, 0));
  const Value loop =
      ops::add_scan(call.graph,
                    {{call.b.broadcast(call.scalar(boolean, 0), {groups, n}),
                      call.b.broadcast(call.scalar(i64, 0), {groups})},
                     {call.b.transpose(covers, {1, 0, 2}), diagonal, call.b.transpose(candidate, {1, 0})},
                     invariants,
                     n,
                     false},
                    body);
  const Value keeps = call.b.transpose({loop.node, 2}, {1, 0});  // [groups, n]

  // So many are bound that few are cut off, and a graph for one size is like that for another.
  constexpr int64_t few = 32;
  const int64_t all = groups * n, bound = said.most[0] <= few ? groups * said.most[0] : groups * most;
  onnx::Chosen found = onnx::chosen(call, call.b.reshape(keeps, {all}));
  found.order = call.gather(found.order, call.places({bound}, 0), 0);
  const auto divided = [&](std::string_view op, Value x, int64_t by) {
    return call.b.binary(op, x, call.fill(x, static_cast<double>(by)));
  };
  const Value of_group = divided("div", found.order, n);
  const Value box = call.gather(call.b.reshape(order, {all}), found.order, 0);
  std::vector<Value> columns;
  for (const Value x : {divided("div", of_group, classes), divided("rem", of_group, classes), box})
    columns.push_back(call.b.reshape(x, {bound, 1}));
  return {Item::bounded(call.concat(columns, 1), 0, found.count)};
}
