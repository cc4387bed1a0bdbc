#include <algorithm>

#include "onnx/import/call.h"

using namespace millrace;

MILLRACE_ONNX_IMPORT(Concat) {
  const int64_t axis = call.axis(call.integer("axis"), call.rank(0));
  std::vector<Value> parts;
  for (int k = 0; k < call.count(); ++k) parts.push_back(call[k]);
  const Value all = call.concat(parts, axis);
  // Keys and values of earlier tokens, of which there are none yet, add nothing.
  const auto empty = [&](Value part) { return call.graph.type(part).shape[static_cast<int>(axis)] == 0; };
  if (std::none_of(parts.begin(), parts.end(), empty)) return {all};
  std::erase_if(parts, empty);
  return {parts.empty() ? all : parts.size() == 1 ? parts[0] : call.concat(parts, axis)};
}
