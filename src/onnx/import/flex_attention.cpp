#include <cmath>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

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
  const auto for_queries = [&](Value x, int64_t last) {
    if (q[1] == k[1]) return x;
    const Value one = call.b.reshape(x, {k[0], k[1], 1, k[2], last});
    return call.b.reshape(call.b.broadcast(one, {k[0], k[1], q[1] / k[1], k[2], last}),
                          {k[0], q[1], k[2], last});
  };
  Value scores =
      call.b.matmul(call.b.mul(call[0], scale), for_queries(call.b.mul(call[1], scale), k[3]), false, true);
  scores = changed(call, "score_mod", call.b.cast(scores, in));
  const Value weights = changed(call, "prob_mod", call.b.softmax(scores, -1));
  return {call.b.cast(call.b.matmul(weights, for_queries(call.b.cast(call[2], in), v[3])), call.dtype(2))};
}
