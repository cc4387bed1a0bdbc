#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(LayerNormalization) {
  const int64_t axis = call.axis(call.integer("axis", -1), call.rank(0));
  const double epsilon = call.number("epsilon", 1e-5);
  const Ints axes = onnx::numbered(axis, call.rank(0));
  const Shape inner(call.shape(0).begin() + axis, call.shape(0).end());
  const Value x = call.b.widen(call[0]), mean = call.b.mean(x, axes, true);
  const Value centred = call.b.sub(x, mean);
  const Value deviation =
      call.graph.add("rsqrt", {call.b.add(call.b.mean(call.b.mul(centred, centred), axes, true), epsilon)});
  const bool whole = call.given(2) && call.shape(1) == inner && call.shape(2) == inner;
  Value y;
  if (whole) {
    y = call.graph.add("layer_norm", {call[0], call[1], call[2]}, {{"axis", axis}, {"eps", epsilon}});
  } else {
    y = call.b.mul(call.b.cast(call.b.mul(centred, deviation), call.dtype(0)), call[1]);
    if (call.given(2)) y = call.b.add(y, call[2]);
  }
  return {y, mean, deviation};
}

MILLRACE_ONNX_IMPORT(RMSNormalization) {
  const int64_t axis = call.axis(call.integer("axis", -1), call.rank(0));
  const Value y =
      call.graph.add("rms_norm", {call[0]}, {{"axis", axis}, {"eps", call.number("epsilon", 1e-5)}});
  return {call.b.mul(y, call.b.cast(call[1], call.dtype(0)))};
}

namespace {

/// x [batch, channels, …] over the positions of `groups` groups of channels.
Value normalised(onnx::ImportCall& call, int64_t groups, double epsilon) {
  const Shape shape = call.shape(0);
  if (call.rank(0) < 2) call.refuse("it needs samples of channels");
  const int64_t batch = shape[0].size(), each = batch * groups == 0 ? 0 : shape.count() / (batch * groups);
  const Value x = call.b.reshape(call.b.widen(call[0]), {batch, groups, each});
  const Value centred = call.b.sub(x, call.b.mean(x, {2}, true));
  const Value variance = call.b.mean(call.b.mul(centred, centred), {2}, true);
  return call.b.reshape(call.b.mul(centred, call.graph.add("rsqrt", {call.b.add(variance, epsilon)})), shape);
}

/// A number a channel.
Value of_channels(onnx::ImportCall& call, int k) {
  Shape shape(static_cast<size_t>(call.rank(0) - 1), Dim(1));
  shape[0] = call.shape(0)[1];
  return call.b.widen(call.b.reshape(call[k], shape));
}

Value scaled(onnx::ImportCall& call, Value x) {
  return call.b.cast(call.b.add(call.b.mul(x, of_channels(call, 1)), of_channels(call, 2)), call.dtype(0));
}

}  // namespace

MILLRACE_ONNX_IMPORT(InstanceNormalization) {
  return {scaled(
      call, normalised(call, call.rank(0) < 2 ? 1 : call.shape(0)[1].size(), call.number("epsilon", 1e-5)))};
}
MILLRACE_ONNX_IMPORT(GroupNormalization) {
  const int64_t groups = call.integer("num_groups");
  if (groups < 1) call.refuse("it has no groups");
  if (call.opset < 21)
    call.refuse("before opset 21 it has a scale for each group; convert the model to opset 21");
  return {scaled(call, normalised(call, groups, call.number("epsilon", 1e-5)))};
}
MILLRACE_ONNX_IMPORT(MeanVarianceNormalization) {
  const Ints axes = call.ints("axes", Ints{0, 2, 3});
  const Value centred = call.b.sub(call[0], call.b.mean(call[0], axes, true));
  const Value deviation = call.graph.add("sqrt", {call.b.mean(call.b.mul(centred, centred), axes, true)});
  return {call.b.div(centred, call.b.add(deviation, 1e-9))};
}
MILLRACE_ONNX_IMPORT(LpNormalization) {
  const int64_t axis = call.axis(call.integer("axis", -1), call.rank(0)), p = call.integer("p", 2);
  if (p != 1 && p != 2) call.refuse("only the norms 1 and 2 are known");
  const Value x = call[0];
  Value norm = p == 1 ? call.b.sum(call.graph.add("abs", {x}), {axis}, true)
                      : call.graph.add("sqrt", {call.b.sum(call.b.mul(x, x), {axis}, true)});
  // All zeros stay zeros.
  norm = call.b.select(call.compare("equal", norm, 0), call.fill(norm, 1), norm);
  return {call.b.div(x, norm)};
}
