#include <limits>

#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(IsInf) {
  const Value x = call[0];
  const auto is = [&](double value) { return call.compare("equal", x, value); };
  const bool positive = call.integer("detect_positive", 1) != 0,
             negative = call.integer("detect_negative", 1) != 0;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (positive && negative) return {call.graph.add("logical_or", {is(infinity), is(-infinity)})};
  if (positive) return {is(infinity)};
  if (negative) return {is(-infinity)};
  return {call.b.broadcast(call.scalar(boolean, 0), call.shape(0))};
}
