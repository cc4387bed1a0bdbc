#include <algorithm>
#include <cstring>

#include "onnx/import/import.h"

namespace millrace::onnx {

Array first_along(const Array& array, int axis, int64_t size) {
  std::vector<int64_t> sizes = array.shape().sizes();
  const auto at = static_cast<size_t>(axis);
  const int64_t all = sizes[at];
  size = std::clamp<int64_t>(size, 0, all);
  sizes[at] = size;
  Array part(array.dtype(), Shape(sizes));
  int64_t outer = 1, inner = array.dtype().bytes();
  for (size_t d = 0; d < at; ++d) outer *= sizes[d];
  for (size_t d = at + 1; d < sizes.size(); ++d) inner *= sizes[d];
  for (int64_t i = 0; i < outer && part.count() > 0; ++i)
    std::memcpy(static_cast<char*>(part.data()) + i * size * inner,
                static_cast<const char*>(array.data()) + i * all * inner, static_cast<size_t>(size * inner));
  return part;
}

}  // namespace millrace::onnx
