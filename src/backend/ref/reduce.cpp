// Reductions over axes, in index order; floats in double, integers wrapping.
#include "ops/reduce.h"

#include <cmath>
#include <limits>

#include <millrace/operator.h>

#include "backend/ref/index.h"
#include "backend/ref/registry.h"

namespace millrace::ref {
namespace {

/// For every result element the flat positions of what it is made from, in order.
std::vector<std::vector<int64_t>> groups(const Node& node, const Array& operand) {
  const Shape kept = ops::kept_shape(operand.shape(), node.attributes.ints("axes"));
  const std::vector<int64_t> to = kept.sizes(), stride = strides(to);
  std::vector<std::vector<int64_t>> found(kept.count());
  for_each_index(operand.shape().sizes(), [&](int64_t i, std::span<const int64_t> index) {
    int64_t at = 0;
    for (size_t d = 0; d < to.size(); ++d)
      if (to[d] != 1) at += index[d] * stride[d];
    found[at].push_back(i);
  });
  return found;
}

double sum_of(const Array& x, std::span<const int64_t> members) {
  double total = 0;
  for (int64_t i : members) total += x.at(i);
  return total;
}

/// The position within `members` of the largest (sign 1) or smallest (−1): the first of equals; NaN beats
/// all.
int64_t extreme(const Array& x, std::span<const int64_t> members, int sign) {
  const bool whole = !x.dtype().is_float();
  int64_t best = 0;
  for (size_t k = 1; k < members.size(); ++k) {
    bool better;
    if (whole) {
      const int64_t a = x.int_at(members[k]), b = x.int_at(members[best]);
      better = sign > 0 ? a > b : a < b;
    } else {
      const double a = x.at(members[k]), b = x.at(members[best]);
      better = !std::isnan(b) && (std::isnan(a) || (sign > 0 ? a > b : a < b));
    }
    if (better) best = static_cast<int64_t>(k);
  }
  return best;
}

/// The result of max (sign 1) or min (−1) over nothing.
void set_empty(Array& out, int64_t i, int sign) {
  const double infinity = std::numeric_limits<double>::infinity();
  out.set(i, sign > 0 ? -infinity : infinity);  // integers saturate
}

}  // namespace

std::vector<Array> reduce(const Node& node, std::span<const Array> operands) {
  const Array& x = operands[0];
  Array out(node.types[0]);
  const std::vector<std::vector<int64_t>> members = groups(node, x);
  const Reduction kind = *node.op->reduction;
  const int sign = kind == Reduction::max || kind == Reduction::argmax ? 1 : -1;
  for (int64_t i = 0; i < out.count(); ++i) {
    switch (kind) {
      case Reduction::sum:
        if (x.dtype().is_float()) {
          out.set(i, sum_of(x, members[i]));
        } else {
          uint64_t total = 0;
          for (int64_t m : members[i]) total += static_cast<uint64_t>(x.int_at(m));
          out.set_int(i, static_cast<int64_t>(total));
        }
        break;
      case Reduction::mean:
        out.set(i, sum_of(x, members[i]) / static_cast<double>(members[i].size()));
        break;
      case Reduction::max:
      case Reduction::min:
        if (members[i].empty())
          set_empty(out, i, sign);
        else
          copy_element(out, i, x, members[i][extreme(x, members[i], sign)]);
        break;
      case Reduction::argmax:
      case Reduction::argmin:
        out.set_int(i, extreme(x, members[i], sign));
        break;
    }
  }
  return {out};
}

}  // namespace millrace::ref
