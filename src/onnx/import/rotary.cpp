#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(RotaryEmbedding) {
  const Shape shape = call.shape(0);
  Value x = call[0];
  const int64_t heads = call.rank(0) == 4 ? shape[1].size() : call.integer("num_heads", 0);
  if (heads < 1) call.refuse("the number of heads is not known");
  const bool flat = call.rank(0) == 3;
  if (flat)
    x = call.b.transpose(call.b.reshape(x, {shape[0], shape[1], heads, shape[2].size() / heads}),
                         {0, 2, 1, 3});
  const Ints s = call.b.shape(x).sizes();
  int64_t turned = call.integer("rotary_embedding_dim", 0);
  if (turned == 0) turned = s[3];
  const int64_t half = turned / 2;
  const auto slice = [&](Value v, int64_t from, int64_t to, int64_t step) {
    Ints starts{0, 0, 0, from}, ends = call.b.shape(v).sizes();
    ends[3] = to;
    return call.graph.add("slice", {v}, {{"starts", starts}, {"ends", ends}, {"steps", Ints{1, 1, 1, step}}});
  };
  const auto angles = [&](int k) {
    Value of = call[k];
    if (call.given(3)) of = call.gather(of, call[3], 0);
    return call.b.broadcast(call.b.reshape(of, {s[0], 1, s[2], half}), {s[0], s[1], s[2], half});
  };
  const Value cosine = angles(1), sine = angles(2);
  const bool interleaved = call.integer("interleaved", 0) != 0;
  const Value one = interleaved ? slice(x, 0, turned, 2) : slice(x, 0, half, 1),
              other = interleaved ? slice(x, 1, turned, 2) : slice(x, half, turned, 1);
  const Value real = call.b.sub(call.b.mul(one, cosine), call.b.mul(other, sine)),
              imaginary = call.b.add(call.b.mul(one, sine), call.b.mul(other, cosine));
  Value y = interleaved ? call.b.reshape(call.stacked({real, imaginary}, 4), {s[0], s[1], s[2], turned})
                        : call.concat({real, imaginary}, 3);
  if (turned < s[3]) y = call.concat({y, slice(x, turned, s[3], 1)}, 3);
  if (flat) y = call.b.reshape(call.b.transpose(y, {0, 2, 1, 3}), shape);
  return {y};
}
