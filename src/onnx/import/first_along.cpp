#include "ir/first_along.h"

#include <algorithm>

#include "onnx/import/import.h"

namespace millrace::onnx {

Array first_along(const Array& array, int axis, int64_t size) {
  const int64_t all = array.shape()[static_cast<size_t>(axis)].size();
  Array part(millrace::first_along(array.type(), axis, std::clamp<int64_t>(size, 0, all)));
  copy_first_along(array, axis, part);
  return part;
}

}  // namespace millrace::onnx
