#include "onnx/import/bounded.h"

using namespace millrace;

namespace {

std::vector<Value> cumulative(onnx::ImportCall& call, std::string_view op, double neutral) {
  const int rank = call.rank(0);
  const int64_t axis = call.axis(static_cast<int64_t>(call.known_number(1)), rank);
  const bool reverse = call.integer("reverse", 0) != 0, exclusive = call.integer("exclusive", 0) != 0;
  const int64_t size = call.shape(0)[static_cast<size_t>(axis)].size();
  Value x = call[0];
  if (exclusive && size > 0)
    x = reverse ? call.pad(call.part(x, axis, 1, size), axis, 0, 1, neutral)
                : call.pad(call.part(x, axis, 0, size - 1), axis, 1, 0, neutral);
  return {onnx::running(call, op, x, axis, neutral, reverse)};
}

}  // namespace

MILLRACE_ONNX_IMPORT(CumSum) { return cumulative(call, "add", 0); }
MILLRACE_ONNX_IMPORT(CumProd) { return cumulative(call, "mul", 1); }
