// Row-major index arithmetic for reference functions.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include <millrace/array.h>

namespace millrace::ref {

/// Row-major strides in elements.
inline std::vector<int64_t> strides(std::span<const int64_t> sizes) {
  std::vector<int64_t> out(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    out[d] = stride;
    stride *= sizes[d];
  }
  return out;
}

inline int64_t flatten(std::span<const int64_t> index, std::span<const int64_t> strides) {
  int64_t flat = 0;
  for (size_t d = 0; d < index.size(); ++d) flat += index[d] * strides[d];
  return flat;
}

/// to[i] = from[j], bit for bit; both of one dtype.
inline void copy_element(Array& to, int64_t i, const Array& from, int64_t j) {
  const int64_t width = to.dtype().bytes();
  char* const into = static_cast<char*>(to.data()) + i * width;
  const char* const out_of = static_cast<const char*>(from.data()) + j * width;
  if (width == 4)  // a call takes longer than the copy
    std::memcpy(into, out_of, 4);
  else
    std::memcpy(into, out_of, width);
}

/// Calls f(flat position, index) for every element of a shape.
template <typename F>
void for_each_index(const std::vector<int64_t>& sizes, F f) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  std::vector<int64_t> index(sizes.size());
  for (int64_t i = 0; i < count; ++i) {
    f(i, index);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace millrace::ref
