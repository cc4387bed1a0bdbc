#include <cmath>

#include "onnx/import/call.h"

using namespace millrace;

// Windows of a known length.
namespace {

std::vector<Value> window(onnx::ImportCall& call, double a, double b, double c) {
  const auto size = static_cast<int64_t>(call.known_number(0));
  const std::optional<DType> dtype = onnx::dtype_of(call.integer("output_datatype", 1));
  if (!dtype || size < 0 || size > (int64_t{1} << 31))
    call.refuse("its length or type is none that can be had");
  const double period = static_cast<double>(call.integer("periodic", 1) != 0 ? size : size - 1);
  Array values(*dtype, {size});
  for (int64_t i = 0; i < size; ++i) {
    const double angle = 2 * M_PI * static_cast<double>(i) / period;
    values.set(i, a - b * std::cos(angle) + c * std::cos(2 * angle));
  }
  return {call.constant(values)};
}

}  // namespace

MILLRACE_ONNX_IMPORT(HannWindow) { return window(call, 0.5, 0.5, 0); }
MILLRACE_ONNX_IMPORT(HammingWindow) { return window(call, 25.0 / 46, 21.0 / 46, 0); }
MILLRACE_ONNX_IMPORT(BlackmanWindow) { return window(call, 0.42, 0.5, 0.08); }
