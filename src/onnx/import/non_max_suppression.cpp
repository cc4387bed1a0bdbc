#include <algorithm>

#include "onnx/import/bounded.h"

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

}  // namespace

/// The result is as large as it can be, with how much of it counts beside.
MILLRACE_ONNX_IMPORT(NonMaxSuppression) {
  const Ints boxes = call.graph.type(call.buffer(0)).shape.sizes();
  const Shape scores = call.graph.type(call.buffer(1)).shape;
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0].size() ||
      boxes[1] != scores[2].size())
    call.refuse("its scores do not fit its boxes");
  const int64_t groups = scores[0].size() * scores[1].size();
  onnx::ImportCall::Said said{{0}, {0}, {}};
  if (call.given(2) && (call.known(2) || call.item(2).between))
    said = call.sizes_said(2);
  else if (call.given(2))  // whatever it is, no more than there are
    said = {{0}, {boxes[1]}, call.b.reshape(call.b.cast(call[2], i64), {1})};
  if (said.most.size() != 1) call.refuse("how many boxes there may be is not one number");
  // So many are bound that few are cut off, and a graph for one size is like that for another.
  constexpr int64_t few = 32;
  const int64_t most =
      said.most[0] <= few ? std::max<int64_t>(said.most[0], 0) : std::min(said.most[0], boxes[1]);
  if (most == 0 || groups == 0) {
    Array none(i64, {0, 3});
    return {call.constant(none)};
  }
  const auto limit = [&](int k) {
    return call.given(k) ? call.b.reshape(call.b.cast(call[k], f32), {}) : call.scalar(f32, 0);
  };
  const Value score = call.b.cast(call.buffer(1), f32);
  Value candidates = call.given(4) ? call.graph.add("greater", {score, call.b.broadcast(limit(4), scores)})
                                   : call.b.broadcast(call.scalar(boolean, 1), scores);
  for (const int k : {0, 1}) {  // boxes that are there
    if (!call.bounded(k)) continue;
    if (call.item(k).bounded_axis != (k == 0 ? 1 : 2)) (void)call[k];
    candidates =
        call.graph.add("logical_and", {candidates, onnx::counts(call, scores, 2, call.item(k).size)});
  }
  std::vector<Value> corners = corners_of(call, boxes, call.integer("center_point_box", 0) != 0);
  for (Value& corner : corners) corner = call.b.reshape(corner, {1, boxes[0], boxes[1]});
  const Value kept = call.graph.add("non_max_suppression",
                                    {call.concat(corners, 0), score, candidates, limit(3),
                                     said.known() ? call.whole(most) : call.element(said.values, 0)},
                                    {{"most", Shape{most}}});
  return {Item::bounded(kept, 0, {kept.node, 1})};
}
