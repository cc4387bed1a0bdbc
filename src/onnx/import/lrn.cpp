#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

/// The squares of neighbouring channels, as an average over a window of channels.
MILLRACE_ONNX_IMPORT(LRN) {
  const int64_t size = call.integer("size"), channels = call.shape(0)[1].size();
  const double alpha = call.number("alpha", 1e-4), beta = call.number("beta", 0.75),
               bias = call.number("bias", 1);
  const Value squares = call.b.mul(call[0], call[0]);
  const auto rank = static_cast<size_t>(call.rank(0));
  Ints low(rank, 0), high(rank, 0);
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  const Value padded = call.graph.add("pad", {squares}, {{"low", low}, {"high", high}});
  Value total;
  for (int64_t k = 0; k < size; ++k) {
    const Value part = call.part(padded, 1, k, k + channels);
    total = total.valid() ? call.b.add(total, part) : part;
  }
  const Value base = call.b.add(call.b.mul(total, alpha / static_cast<double>(size)), bias);
  return {call.b.div(call[0], call.graph.add("pow", {base, call.fill(base, beta)}))};
}
