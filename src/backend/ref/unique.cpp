#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <millrace/scalar.h>

#include "backend/ref/registry.h"

using namespace millrace;

/// -1, 0, 1: an element is less than, equal to, greater than another.
static int order(const Array& x, int64_t a, int64_t b) {
  if (x.dtype() == u64) {
    const auto u = static_cast<uint64_t>(x.int_at(a)), v = static_cast<uint64_t>(x.int_at(b));
    return u < v ? -1 : u > v;
  }
  if (!x.dtype().is_float()) return x.int_at(a) < x.int_at(b) ? -1 : x.int_at(a) > x.int_at(b);
  const double u = x.at(a), v = x.at(b);
  if (std::isnan(u) || std::isnan(v)) return std::isnan(u) - std::isnan(v);
  return u < v ? -1 : u > v;
}

MILLRACE_REF(unique) {
  const Array& x = operands[0];
  const int64_t n = x.shape()[0].size(), width = x.shape()[1].size();
  const int64_t count = std::clamp<int64_t>(operands[1].int_at(0), 0, n);
  const auto compare = [&](int64_t a, int64_t b) {
    int found = 0;
    for (int64_t k = 0; k < width && found == 0; ++k) found = order(x, a * width + k, b * width + k);
    return found;
  };
  std::vector<int64_t> firsts;  // in their order
  for (int64_t i = 0; i < count; ++i)
    if (std::none_of(firsts.begin(), firsts.end(), [&](int64_t first) { return compare(first, i) == 0; }))
      firsts.push_back(i);
  if (node.attributes.flag("sorted"))
    std::sort(firsts.begin(), firsts.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  std::vector<Array> results;
  for (const Type& type : node.types) results.push_back(Array::full(type.dtype, type.shape, 0));
  for (int64_t k = 0; k < std::ssize(firsts); ++k) {
    results[0].set_int(k, firsts[static_cast<size_t>(k)]);
    for (int64_t i = 0; i < count; ++i) {
      if (compare(firsts[static_cast<size_t>(k)], i) != 0) continue;
      results[1].set_int(k, results[1].int_at(k) + 1);
      results[2].set_int(i, k);
    }
  }
  results[3].set_int(0, std::ssize(firsts));
  return results;
}
