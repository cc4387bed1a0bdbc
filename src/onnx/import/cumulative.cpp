#include "onnx/import/bounded.h"

using namespace millrace;
using onnx::Ints;

namespace {

std::vector<Value> cumulative(onnx::ImportCall& call, std::string_view op, double neutral) {
  const int rank = call.rank(0);
  const int64_t axis = call.axis(static_cast<int64_t>(call.known_number(1)), rank);
  const bool reverse = call.integer("reverse", 0) != 0, exclusive = call.integer("exclusive", 0) != 0;
  const Ints sizes = call.shape(0).sizes();
  const auto at = static_cast<size_t>(axis);
  const auto shifted = [&](Value x, int64_t by) {
    Ints low(sizes.size(), 0), high(sizes.size(), 0);
    (reverse ? high : low)[at] = by;
    const Value part = reverse ? call.part(x, axis, by, sizes[at]) : call.part(x, axis, 0, sizes[at] - by);
    return call.graph.add("pad", {part}, {{"low", low}, {"high", high}, {"value", neutral}});
  };
  Value x = call[0];
  if (exclusive && sizes[at] > 0) x = shifted(x, 1);
  return {onnx::running(call, op, x, axis, neutral, reverse)};
}

}  // namespace

MILLRACE_ONNX_IMPORT(CumSum) { return cumulative(call, "add", 0); }
MILLRACE_ONNX_IMPORT(CumProd) { return cumulative(call, "mul", 1); }
