#include "ops/rows.h"

namespace millrace::ops {

std::vector<int64_t> prepended(std::vector<int64_t> list, int64_t first) {
  list.insert(list.begin(), first);
  return list;
}

std::vector<int64_t> prepended_if_any(std::vector<int64_t> list, int64_t first) {
  return list.empty() ? list : prepended(std::move(list), first);
}

std::vector<char> rows_where_kept(const RowContext& c) {
  const Shape& shape = c.node.types[0].shape;
  return shape.rank() > 0 && shape[0] == c.count ? std::vector<char>{1} : std::vector<char>{};
}

void set_rows_of_shape(Attributes& attributes, int64_t rows) {
  Shape shape = attributes.shape("shape");
  shape[0] = Dim(rows);
  attributes.set("shape", shape);
}

}  // namespace millrace::ops
