#include "ops/rows.h"

namespace millrace::ops {

std::vector<int64_t> prepended(std::vector<int64_t> list, int64_t first) {
  list.insert(list.begin(), first);
  return list;
}

std::vector<int64_t> prepended_if_any(std::vector<int64_t> list, int64_t first) {
  return list.empty() ? list : prepended(std::move(list), first);
}

void set_size_in_shape(Attributes& attributes, int axis, int64_t size) {
  Shape shape = attributes.shape("shape");
  shape[axis] = Dim(size);
  attributes.set("shape", shape);
}

}  // namespace millrace::ops
