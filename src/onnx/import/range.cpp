#include <algorithm>
#include <cmath>

#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Range) {
  const double start = call.known_number(0), limit = call.known_number(1), delta = call.known_number(2);
  if (delta == 0) call.refuse("its delta is 0");
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count < 1e12)) call.refuse("it has too many elements");
  const Value steps =
      call.graph.add("iota", {}, {{"shape", Shape{static_cast<int64_t>(count)}}, {"dtype", call.dtype(0)}});
  return {call.b.add(call.b.mul(steps, delta), start)};
}
