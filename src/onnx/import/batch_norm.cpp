#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(BatchNormalization) {
  const double epsilon = call.number("epsilon", 1e-5);
  const DType dtype = call.dtype(0);
  const auto as_x = [&](int k) { return call.b.cast(call[k], dtype); };
  if (call.integer("training_mode", 0) != 0) {
    // By the batch's own statistics; the running ones move towards these.
    const double momentum = call.number("momentum", 0.9);
    Ints axes{0};
    for (int d = 2; d < call.rank(0); ++d) axes.push_back(d);
    const Value mean = call.b.mean(call[0], axes, true), centred = call.b.sub(call[0], mean);
    const Value variance = call.b.mean(call.b.mul(centred, centred), axes, true);
    const auto flat = [&](Value x) { return call.b.reshape(x, {call.shape(0)[1]}); };
    const auto moved = [&](Value running, Value now) {
      return call.b.add(call.b.mul(running, momentum), call.b.mul(flat(now), 1 - momentum));
    };
    const Value y = call.graph.add(
        "batch_norm_inference", {call[0], flat(mean), flat(variance), as_x(1), as_x(2)}, {{"eps", epsilon}});
    return {y, moved(call[3], mean), moved(call[4], variance)};
  }
  return {call.graph.add("batch_norm_inference", {call[0], as_x(3), as_x(4), as_x(1), as_x(2)},
                         {{"eps", epsilon}})};
}
