#include "eval/spearman.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/format.h"

namespace millrace::eval {
namespace {

/// Less their mean.
std::vector<double> centred_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  const double middle = (static_cast<double>(values.size()) - 1) / 2;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2 - middle;
  }
  return ranks;
}

}  // namespace

double spearman(std::span<const double> x, std::span<const double> y) {
  MILLRACE_CHECK(x.size() == y.size(), "{} and {} values", x.size(), y.size());
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(x.begin(), x.end(), finite) || !std::all_of(y.begin(), y.end(), finite)) return NAN;
  const std::vector<double> a = centred_ranks(x), b = centred_ranks(y);
  const auto product = [](const std::vector<double>& one, const std::vector<double>& other) {
    return std::inner_product(one.begin(), one.end(), other.begin(), 0.0);
  };
  return product(a, b) / std::sqrt(product(a, a) * product(b, b));
}

}  // namespace millrace::eval
