#include "base/moments.h"

namespace millrace {

void Moments::add(double x) {
  ++count_;
  sum_.add(x);
  squares_.add_product(x, x);
}

void Moments::merge(const Moments& other) {
  count_ += other.count_;
  sum_.merge(other.sum_);
  squares_.merge(other.squares_);
}

double Moments::mean() const {
  if (count_ == 0) return 0;
  // A quotient, and what is left of the sum: the mean of equal numbers is that number.
  const auto n = static_cast<double>(count_);
  const double quotient = sum_.value() / n;
  ExactSum rest = sum_;
  rest.add_product(-n, quotient);
  return quotient + rest.value() / n;
}

double Moments::spread() const {
  if (count_ == 0) return 0;
  // n Σ x² − (Σ x)², rounded only at the end.
  const auto n = static_cast<double>(count_);
  ExactSum spread;
  for (const double part : squares_.parts()) spread.add_product(n, part);
  const std::vector<double> parts = sum_.parts();
  for (const double a : parts)
    for (const double b : parts) spread.add_product(-a, b);
  return spread.value() / n;
}

}  // namespace millrace
