#include <cmath>
#include <memory>

#include "onnx/import/call.h"
#include "ops/scan.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// [batch, steps, heads · size] as [steps, batch, heads, size], in f32.
Value by_steps(onnx::ImportCall& call, int k, int64_t heads) {
  const Ints sizes = call.shape(k).sizes();
  if (sizes.size() != 3 || heads < 1 || sizes[2] % heads != 0)
    call.refuse("its operands do not divide into heads");
  const Value apart =
      call.b.reshape(call.b.cast(call[k], f32), {sizes[0], sizes[1], heads, sizes[2] / heads});
  return call.b.transpose(apart, {1, 0, 2, 3});
}

}  // namespace

/// A state that takes in a key and a value at each step, and is asked by a query: a loop over the steps.
MILLRACE_ONNX_IMPORT(LinearAttention) {
  const std::string rule = call.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") call.refuse("the update rule '" + rule + "' is not known");
  if (gated != call.given(4) || delta != call.given(5))
    call.refuse("its decay or beta does not fit its update rule");
  const int64_t heads = call.integer("q_num_heads"), own = call.integer("kv_num_heads");
  if (own < 1 || heads < 1 || heads % own != 0) call.refuse("its numbers of heads do not fit each other");
  const Value q = by_steps(call, 0, heads), k = by_steps(call, 1, own), v = by_steps(call, 2, own);
  const Ints qs = call.b.shape(q).sizes(), vs = call.b.shape(v).sizes();
  const int64_t steps = qs[0], batch = qs[1], keys = qs[3], values = vs[3], group = heads / own;
  if (steps < 1 || call.b.shape(k) != Shape{steps, batch, own, keys} || vs[0] != steps || vs[1] != batch)
    call.refuse("its keys and values do not fit its queries");

  std::vector<Value> sequences{q, k, v};
  if (gated) {
    Value decay = by_steps(call, 4, own);
    if (!(call.b.shape(decay)[3] == 1 || call.b.shape(decay)[3] == keys))
      call.refuse("its decay does not fit its keys");
    sequences.push_back(call.graph.add("exp", {call.b.broadcast(decay, {steps, batch, own, keys})}));
  }
  if (delta) {
    const int64_t last = call.shape(5).back().size();
    if (last != 1 && last != own) call.refuse("its beta does not fit its heads");
    sequences.push_back(call.b.broadcast(by_steps(call, 5, last), {steps, batch, own, 1}));
  }
  const DType kept = call.given(3) ? call.dtype(3) : call.dtype(0);
  const Shape state_shape{batch, own, keys, values};
  const Value start =
      call.given(3) ? call.b.cast(call[3], f32) : call.b.broadcast(call.scalar(f32, 0), state_shape);
  if (call.b.shape(start) != state_shape) call.refuse("its past state does not fit");
  double scale = call.number("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(keys));

  auto body = std::make_shared<Graph>();
  ops::Build b(*body);
  Value state = body->input("state", {f32, state_shape});
  const Value one_q = body->input("q", {f32, {batch, heads, keys}}),
              one_k = body->input("k", {f32, {batch, own, keys}});
  Value one_v = body->input("v", {f32, {batch, own, values}});
  if (gated)
    state = b.mul(state, b.reshape(body->input("decay", {f32, {batch, own, keys}}), {batch, own, keys, 1}));
  const Value key_column = b.reshape(one_k, {batch, own, keys, 1});
  if (delta) {
    const Value beta = body->input("beta", {f32, {batch, own, 1}});
    const Value known = b.sum(b.mul(state, key_column), {2}, false);
    one_v = b.mul(b.sub(one_v, known), beta);
  }
  state = b.add(state, b.mul(key_column, b.reshape(one_v, {batch, own, 1, values})));
  const Value asked =
      b.mul(b.reshape(one_q, {batch, own, group, keys, 1}), b.reshape(state, {batch, own, 1, keys, values}));
  const Value answer = b.mul(b.sum(asked, {3}, false), scale);
  body->set_outputs({state, b.reshape(answer, {batch, heads, values})});
  const Value loop = ops::add_scan(call.graph, {{start}, sequences, {}, steps, false}, body);
  const Value out = call.b.transpose({loop.node, 1}, {1, 0, 2, 3});
  return {call.b.cast(call.b.reshape(out, {batch, steps, heads * values}), call.dtype(0)),
          call.b.cast(loop, kept)};
}
