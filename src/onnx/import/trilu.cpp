#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Trilu) {
  const int rank = call.rank(0);
  const double k = call.given(1) ? call.known_number(1) : 0;
  const bool upper = call.integer("upper", 1) != 0;
  const Shape square{call.shape(0)[static_cast<size_t>(rank - 2)],
                     call.shape(0)[static_cast<size_t>(rank - 1)]};
  const Value row = call.places(square, 0), column = call.places(square, 1);
  const Value kept = call.compare(upper ? "greater_equal" : "less_equal", call.b.sub(column, row), k);
  return {call.b.select(kept, call[0], call.fill(call[0], 0))};
}
