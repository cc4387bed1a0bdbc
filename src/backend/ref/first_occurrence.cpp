#include <map>

#include "backend/ref/registry.h"

using namespace millrace;

MILLRACE_REF(first_occurrence) {
  const Array& x = operands[0];
  Array out(node.types[0]);
  std::map<int64_t, int64_t> first;
  for (int64_t i = 0; i < x.count(); ++i) out.set_int(i, first.try_emplace(x.int_at(i), i).first->second);
  return {out};
}
