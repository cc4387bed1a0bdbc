#include "backend/ref/registry.h"

using namespace millrace;

MILLRACE_REF(nonzero) {
  const Array& mask = operands[0];
  Array places = Array::full(node.types[0].dtype, node.types[0].shape, 0), many(node.types[1]);
  int64_t count = 0;
  for (int64_t i = 0; i < mask.count(); ++i) {
    if (mask.int_at(i) == 0) continue;
    int64_t rest = i;
    for (int d = mask.shape().rank() - 1; d >= 0; --d) {
      const int64_t size = mask.shape()[d].size();
      places.set_int(d * mask.count() + count, rest % size);
      rest /= size;
    }
    ++count;
  }
  many.set_int(0, count);
  return {places, many};
}
