#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// -weight[class] · log probability of each sample's class, and the weights; [batch, …].
std::vector<Value> negative_log_likelihood(onnx::ImportCall& call, Value log_probabilities, int weights) {
  const Shape shape = call.b.shape(log_probabilities);
  const DType dtype = call.b.dtype(log_probabilities);
  Value classes = call.b.cast(call[1], i64);
  const Shape of_classes = call.b.shape(classes);
  Value weight = call.b.broadcast(call.scalar(dtype, 1), of_classes);
  if (call.given(weights)) weight = call.gather(call[weights], classes, 0);
  if (call.has("ignore_index")) {
    const Value ignored = call.compare("equal", classes, static_cast<double>(call.integer("ignore_index")));
    weight = call.b.select(ignored, call.fill(weight, 0), weight);
  }
  Shape one = of_classes;
  one.insert(one.begin() + 1, Dim(1));
  const Value place = call.places(shape, 1);
  const Value own = call.b.binary("equal", place, call.b.reshape(classes, one));
  const Value picked =
      call.b.sum(call.b.select(own, log_probabilities, call.fill(log_probabilities, 0)), {1}, false);
  const Value losses = call.graph.add("neg", {call.b.mul(picked, weight)});
  const std::string reduction = call.text("reduction", "mean");
  const Ints all = onnx::numbered(0, of_classes.rank());
  if (reduction == "none") return {losses};
  if (reduction == "sum") return {call.b.sum(losses, all, false)};
  return {call.b.div(call.b.sum(losses, all, false), call.b.sum(weight, all, false))};
}

}  // namespace

MILLRACE_ONNX_IMPORT(NegativeLogLikelihoodLoss) { return negative_log_likelihood(call, call[0], 2); }

MILLRACE_ONNX_IMPORT(SoftmaxCrossEntropyLoss) {
  const Value log_probabilities = call.graph.add("log_softmax", {call[0]}, {{"axis", int64_t{1}}});
  std::vector<Value> results = negative_log_likelihood(call, log_probabilities, 2);
  results.push_back(log_probabilities);
  return results;
}
