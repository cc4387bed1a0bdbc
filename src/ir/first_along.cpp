#include "ir/first_along.h"

#include <algorithm>
#include <cstring>

namespace millrace {

Type first_along(const Type& type, int axis, int64_t size) {
  Type part = type;
  part.shape[static_cast<size_t>(axis)] = size;
  return part;
}

void copy_first_along(const Array& from, int axis, Array& to) {
  const std::vector<int64_t> sizes = from.shape().sizes();
  const auto at = static_cast<size_t>(axis);
  const int64_t all = sizes[at], size = to.shape().sizes()[at];
  int64_t outer = 1, inner = from.dtype().bytes();
  for (size_t d = 0; d < at; ++d) outer *= sizes[d];
  for (size_t d = at + 1; d < sizes.size(); ++d) inner *= sizes[d];
  auto* const target = static_cast<char*>(to.data());
  const auto* const source = static_cast<const char*>(from.data());
  for (int64_t i = 0; i < outer && to.count() > 0; ++i)
    std::memcpy(target + i * size * inner, source + i * all * inner, static_cast<size_t>(size * inner));
}

Array first_along(const Array& array, int axis, int64_t size) {
  const int64_t all = array.shape()[static_cast<size_t>(axis)].size();
  Array part(first_along(array.type(), axis, std::clamp<int64_t>(size, 0, all)));
  copy_first_along(array, axis, part);
  return part;
}

}  // namespace millrace
