#include <cmath>

#include "backend/ref/registry.h"

using namespace millrace;

MILLRACE_REF(scatter_extreme) {
  const Array &indices = operands[1], &updates = operands[2];
  const bool least = node.attributes.flag("least"), real = operands[0].dtype().is_float();
  Array out = operands[0].clone();
  for (int64_t i = 0; i < indices.count(); ++i) {
    const int64_t to = indices.int_at(i);
    if (to < 0 || to >= out.count()) continue;
    if (!real) {
      const int64_t own = out.int_at(to), other = updates.int_at(i);
      if (least ? other < own : other > own) out.set_int(to, other);
      continue;
    }
    const double own = out.at(to), other = updates.at(i);
    if (std::isnan(other) || (least ? other < own : other > own)) out.set(to, other);
  }
  return {out};
}
