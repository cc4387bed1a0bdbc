#include <cmath>
#include <limits>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

// Attention (opset 23): q, k and v of three or four dimensions, groups of heads, a cache of keys and values,
// soft caps; and FlexAttention, which has graphs for such things.
namespace {

/// [batch, length, heads · width] as [batch, heads, length, width].
Value heads_apart(onnx::ImportCall& call, Value x, int64_t heads) {
  const Ints s = call.b.shape(x).sizes();
  if (s.size() == 4) return x;
  if (heads < 1 || s.size() != 3 || s[2] % heads != 0) call.refuse("its heads do not fit its inputs");
  return call.b.transpose(call.b.reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

/// Keys and values of groups of heads, once for each head.
Value for_all_heads(onnx::ImportCall& call, Value x, int64_t heads) {
  const Ints s = call.b.shape(x).sizes();
  if (s[1] == heads) return x;
  if (s[1] < 1 || heads % s[1] != 0) call.refuse("its heads are no multiple of those of the keys");
  const Value wide = call.b.broadcast(call.b.reshape(x, {s[0], s[1], 1, s[2], s[3]}),
                                      {s[0], s[1], heads / s[1], s[2], s[3]});
  return call.b.reshape(wide, {s[0], heads, s[2], s[3]});
}

/// 0 where a key may be seen, −∞ where not.
Value as_bias(onnx::ImportCall& call, Value seen, DType dtype) {
  const Value zero = call.b.broadcast(call.scalar(dtype, 0), call.b.shape(seen));
  return call.b.select(seen, zero, call.fill(zero, -std::numeric_limits<double>::infinity()));
}

/// What a graph of the node makes of its scores or probabilities.
Value changed(onnx::ImportCall& call, const char* by, Value x) {
  const onnx::AttributeProto* graph = call.node.find(by);
  if (!graph || !graph->graph) return x;
  const onnx::Item argument(x);
  const onnx::Items results = call.nested.inline_nested(*graph->graph, {&argument, 1});
  if (results.size() != 1 || results[0].form != onnx::Item::Form::tensor)
    call.refuse(std::string("its graph '") + by + "' does not give one tensor");
  if (call.b.shape(results[0].value) != call.b.shape(x))
    call.refuse(std::string("its graph '") + by + "' gives another shape");
  return call.b.cast(results[0].value, call.b.dtype(x));
}

}  // namespace

MILLRACE_ONNX_IMPORT(Attention) {
  const bool flat = call.rank(0) == 3;
  const DType dtype = call.dtype(0);
  const Value q = heads_apart(call, call[0], call.integer("q_num_heads", 0));
  Value k = heads_apart(call, call[1], call.integer("kv_num_heads", 0)),
        v = heads_apart(call, call[2], call.integer("kv_num_heads", 0));
  int64_t past = 0;
  if (call.given(4) && call.given(5)) {
    past = call.shape(4)[2].size();
    k = call.concat({call[4], k}, 2);
    v = call.concat({call[5], v}, 2);
  }
  const Value present_k = k, present_v = v;
  const Ints s = call.b.shape(q).sizes();
  const int64_t keys = call.b.shape(k)[2].size();
  k = for_all_heads(call, k, s[1]);
  v = for_all_heads(call, v, s[1]);
  const double scale = call.number("scale", 1 / std::sqrt(static_cast<double>(s[3])));
  // As the standard says: both sides by the root of the scale.
  const Value left = call.b.mul(call.b.widen(q), std::sqrt(scale)),
              right = call.b.mul(call.b.widen(k), std::sqrt(scale));
  Value scores = call.b.matmul(left, right, false, true);
  const Value plain = scores;
  const Shape all = call.b.shape(scores);
  const DType wide = call.b.dtype(scores);
  Value bias;
  const auto add_bias = [&](Value each) { bias = bias.valid() ? call.b.add(bias, each) : each; };
  if (call.given(3)) {
    Value mask = call[3];
    // Of fewer keys than there are: the others are not seen.
    const int64_t has = call.b.shape(mask).back().size();
    mask = call.b.dtype(mask) == boolean ? as_bias(call, mask, wide) : call.b.cast(mask, wide);
    if (has < keys && has != 1)
      mask = call.pad(mask, call.b.shape(mask).rank() - 1, 0, keys - has,
                      -std::numeric_limits<double>::infinity());
    add_bias(mask);
  }
  const auto places = [&](int64_t axis) { return call.places({s[2], keys}, axis); };
  if (call.integer("is_causal", 0) != 0) {
    if (call.given(6)) {
      // The queries stand at the end of what each sample has.
      const Value length = call.b.reshape(call.b.cast(call[6], i64), {s[0], 1, 1, 1});
      const Value row = call.b.add(call.b.reshape(places(0), {1, 1, s[2], keys}),
                                   call.b.sub(length, static_cast<double>(s[2])));
      add_bias(as_bias(
          call, call.b.binary("greater_equal", row, call.b.reshape(places(1), {1, 1, s[2], keys})), wide));
    } else {
      const Value row = call.b.add(places(0), static_cast<double>(past));
      add_bias(as_bias(call, call.graph.add("greater_equal", {row, places(1)}), wide));
    }
  }
  if (call.given(6)) {
    const Value length = call.b.reshape(call.b.cast(call[6], i64), {s[0], 1, 1, 1});
    add_bias(
        as_bias(call, call.b.binary("less", call.b.reshape(places(1), {1, 1, s[2], keys}), length), wide));
  }
  const double cap = call.number("softcap", 0);
  if (cap > 0) scores = call.b.mul(call.graph.add("tanh", {call.b.div(scores, cap)}), cap);
  const Value soft = scores;
  if (bias.valid()) scores = call.b.add(scores, bias);
  const Value masked = scores;
  const Value shares = call.b.softmax(call.b.broadcast(scores, all), 3, true);
  Value y = call.b.cast(call.b.matmul(shares, call.b.widen(v)), dtype);
  if (flat) {
    const Ints out = call.b.shape(y).sizes();
    y = call.b.reshape(call.b.transpose(y, {0, 2, 1, 3}), {out[0], out[2], out[1] * out[3]});
  }
  const int64_t mode = call.integer("qk_matmul_output_mode", 0);
  const Value shown = mode == 0 ? plain : mode == 1 ? soft : mode == 2 ? masked : shares;
  return {y, present_k, present_v, call.b.cast(call.b.broadcast(shown, all), dtype)};
}

/// Attention whose scores and probabilities go through graphs of the node.
MILLRACE_ONNX_IMPORT(ai_onnx_preview_FlexAttention) {
  const Ints q = call.shape(0).sizes(), k = call.shape(1).sizes(), v = call.shape(2).sizes();
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || k[1] < 1 || q[1] % k[1] != 0 || k[1] != v[1] ||
      k[2] != v[2] || q[3] != k[3])
    call.refuse("its queries, keys and values do not fit each other");
  const double scale = std::sqrt(call.number("scale", 1 / std::sqrt(static_cast<double>(q[3]))));
  DType in = call.dtype(0).bits < 32 ? f32 : call.dtype(0);
  if (call.has("softmax_precision")) {
    const std::optional<DType> said = onnx::dtype_of(call.integer("softmax_precision"));
    if (!said || !said->is_float()) call.refuse("its softmax_precision is no type of floats");
    in = *said;
  }
  const Value keys = for_all_heads(call, call.b.mul(call[1], scale), q[1]);
  Value scores = call.b.matmul(call.b.mul(call[0], scale), keys, false, true);
  scores = changed(call, "score_mod", call.b.cast(scores, in));
  const Value weights = changed(call, "prob_mod", call.b.softmax(scores, -1));
  const Value values = for_all_heads(call, call.b.cast(call[2], in), q[1]);
  return {call.b.cast(call.b.matmul(weights, values), call.dtype(2))};
}
