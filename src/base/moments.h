// Mean and variance of numbers, of which parts can be merged.
#pragma once

#include <cmath>
#include <cstdint>

#include <millrace/exact_sum.h>

namespace millrace {

/// Of finite numbers whose squares are finite, too. Sums are exact, so that the results have the same bits in
/// whatever order, and in whatever parts, numbers were added.
class Moments {
 public:
  void add(double x);
  void merge(const Moments& other);

  int64_t count() const { return count_; }
  /// 0 of no numbers.
  double mean() const;
  /// Σ (x − mean)²: nothing is lost where the mean is large, and it is 0 exactly where all are alike.
  double spread() const;
  /// √(spread / count); 0 of no numbers.
  double deviation() const { return count_ > 0 ? std::sqrt(spread() / static_cast<double>(count_)) : 0; }

 private:
  int64_t count_ = 0;
  ExactSum sum_, squares_;
};

}  // namespace millrace
