#include <algorithm>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(Shape) {
  const Ints sizes = call.shape(0).sizes();
  const auto rank = static_cast<int64_t>(sizes.size());
  const auto clip = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t from = clip(call.integer("start", 0)), to = std::max(from, clip(call.integer("end", rank)));
  return {call.ints_constant(Ints(sizes.begin() + from, sizes.begin() + to))};
}

MILLRACE_ONNX_IMPORT(Size) { return {call.whole(call.shape(0).count())}; }
