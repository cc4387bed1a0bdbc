#include <millrace/operator.h>

#include "onnx/import/call.h"
#include "ops/norm.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// The name of the graph's input that a value is, be it cast; empty when it is none.
std::string input_name(const Graph& graph, Value value) {
  if (const Node& node = graph.node(value); node.op->converts) value = node.operands[0];
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    if (graph.inputs()[i] == value) return graph.input_names()[i];
  return {};
}

/// In training steps a model that is trained on goes by the batch, whatever the node says: exporters write it
/// for inference. Statistics that are no initialisers cannot be moved, and stay.
bool goes_by_batch(onnx::ImportCall& call, double epsilon, onnx::Items& results) {
  if (!call.learning || !call.learning->training) return false;
  const std::string mean = input_name(call.graph, call[3]), variance = input_name(call.graph, call[4]);
  if (mean.empty() || variance.empty() || mean == variance) {
    ++call.learning->fixed_norms;
    return false;
  }
  const Value y = call.graph.add("batch_norm", {call[0], call.b.widen(call[1]), call.b.widen(call[2])},
                                 {{"eps", epsilon}});
  call.learning->norms.push_back({mean, variance, 1 - call.number("momentum", 0.9)});
  for (const Value each : {call[0], Value{y.node, 1}, Value{y.node, 2}})
    call.learning->statistics.push_back(each);
  results = {y};
  return true;
}

}  // namespace

MILLRACE_ONNX_IMPORT(BatchNormalization) {
  const double epsilon = call.number("epsilon", 1e-5);
  const DType dtype = call.dtype(0);
  const auto as_x = [&](int k) { return call.b.cast(call[k], dtype); };
  if (onnx::Items by_batch; goes_by_batch(call, epsilon, by_batch)) return by_batch;
  // Before opset 14 a node of more than one result is one of training.
  const bool trains = call.opset < 14 ? call.node.outputs.size() > 1 : call.integer("training_mode", 0) != 0;
  if (!call.learning && trains) {
    // By the batch's own statistics; the running ones move towards these.
    const double momentum = call.number("momentum", 0.9);
    const Ints axes = ops::all_but_channels(call.rank(0));
    const Value mean = call.b.mean(call[0], axes, true), centred = call.b.sub(call[0], mean);
    const Value variance = call.b.mean(call.b.mul(centred, centred), axes, true);
    const auto flat = [&](Value x) { return call.b.reshape(x, {call.shape(0)[1]}); };
    const auto moved = [&](Value running, Value now) {
      return call.b.add(call.b.mul(running, momentum), call.b.mul(flat(now), 1 - momentum));
    };
    const Value y = call.graph.add(
        "batch_norm_inference", {call[0], flat(mean), flat(variance), as_x(1), as_x(2)}, {{"eps", epsilon}});
    return {y, moved(call[3], mean), moved(call[4], variance), flat(mean), flat(variance)};
  }
  return {call.graph.add("batch_norm_inference", {call[0], as_x(3), as_x(4), as_x(1), as_x(2)},
                         {{"eps", epsilon}})};
}
