#include <set>

#include "backend/ref/index.h"
#include "backend/ref/registry.h"

using namespace millrace;

MILLRACE_REF(scatter_rows) {
  const Array &base = operands[0], &indices = operands[1], &rows = operands[2];
  Array out = base.clone();
  const int64_t count = base.shape()[0].size();
  const int64_t width = count > 0 ? base.count() / count : 0;
  std::set<int64_t> written;
  for (int64_t i = 0; i < indices.count(); ++i) {
    const int64_t index = indices.int_at(i);
    if (index < 0 || index >= count || !written.insert(index).second) continue;
    for (int64_t k = 0; k < width; ++k) ref::copy_element(out, index * width + k, rows, i * width + k);
  }
  return {out};
}
