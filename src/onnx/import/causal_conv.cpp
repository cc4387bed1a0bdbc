#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

/// A convolution of each channel over what lies before, of which the last elements are handed on.
MILLRACE_ONNX_IMPORT(CausalConvWithState) {
  const Ints x = call.shape(0).sizes(), weight = call.shape(1).sizes();
  if (x.size() != 3 || weight.size() != 3 || weight[0] != x[1] || weight[1] != 1 || weight[2] < 1)
    call.refuse("its weights do not fit its channels");
  const int64_t before = weight[2] - 1, length = x[2] + before;
  const Value padded = call.given(3) ? call.concat({call[3], call[0]}, 2) : call.pad(call[0], 2, before, 0);
  if (!(call.b.shape(padded)[2] == length)) call.refuse("its past state does not fit its weights");
  const Value y = call.graph.add(
      "conv2d",
      {call.b.reshape(padded, {x[0], x[1], 1, length}), call.b.reshape(call[1], {x[1], 1, 1, weight[2]})},
      {{"strides", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}, {"groups", x[1]}});
  Value out = call.b.reshape(y, {x[0], x[1], x[2]});
  if (call.given(2)) out = call.b.add(out, call.b.reshape(call[2], {x[1], 1}));
  const std::string activation = call.text("activation", "none");
  if (activation == "silu" || activation == "swish")
    out = call.graph.add("silu", {out});
  else if (activation != "none")
    call.refuse("the activation '" + activation + "' is not known");
  return {out, call.part(padded, 2, length - before, length)};
}
