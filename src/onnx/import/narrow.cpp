#include "onnx/import/narrow.h"

#include <limits>

#include "ir/narrow_float.h"

namespace millrace::onnx {

Value narrowed(ImportCall& call, Value x, DType to, bool saturate) {
  x = call.b.cast(x, f32);
  if (to == f8e8m0 || to == f4e2m1) return call.b.cast(x, to);
  const NarrowFloat format = narrow_float(to);
  const double largest = narrow_to_float(to, format.largest);
  if (saturate) return call.b.cast(call.clamp(x, -largest, largest), to);
  // Halfway to the next number, where that would be; the tie goes to the even one.
  const double half = largest - narrow_to_float(to, static_cast<uint8_t>(format.largest - 1)),
               limit = largest + half / 2;
  const bool odd = format.largest % 2 == 1;
  const Value size = call.graph.add("abs", {x});
  const Value over = call.compare(odd ? "greater_equal" : "greater", size, limit);
  const Value beyond = format.infinity != 0
                           ? call.b.mul(call.graph.add("sign", {x}), std::numeric_limits<double>::infinity())
                           : call.fill(x, std::numeric_limits<double>::quiet_NaN());
  return call.b.cast(call.b.select(over, beyond, x), to);
}

}  // namespace millrace::onnx
