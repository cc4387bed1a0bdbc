#include "onnx/import/call.h"

using namespace millrace;

/// The squares of neighbouring channels, as an average over a window of channels.
MILLRACE_ONNX_IMPORT(LRN) {
  const int64_t size = call.integer("size"), before = (size - 1) / 2, channels = call.shape(0)[1].size();
  const double alpha = call.number("alpha", 1e-4), beta = call.number("beta", 0.75),
               bias = call.number("bias", 1);
  const Value squares = call.b.mul(call[0], call[0]);
  const Value padded = call.pad(squares, 1, before, size - 1 - before);
  Value total;
  for (int64_t k = 0; k < size; ++k) {
    const Value part = call.part(padded, 1, k, k + channels);
    total = total.valid() ? call.b.add(total, part) : part;
  }
  const Value base = call.b.add(call.b.mul(total, alpha / static_cast<double>(size)), bias);
  return {call.b.div(call[0], call.graph.add("pow", {base, call.fill(base, beta)}))};
}
