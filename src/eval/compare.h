// Is one model better than another, or is it chance?
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "eval/metric.h"

namespace millrace::eval {

/// McNemar's exact test (Q. McNemar, 1947): of two models' answers to the same rows only those count that one
/// gave rightly and the other wrongly.
struct Mcnemar {
  int64_t only_first = 0, only_second = 0;
  double p = 1;  // that a fair coin divides them so unevenly, or more
};
Mcnemar mcnemar(int64_t only_first, int64_t only_second);

/// Two values of a metric, and the 95 % interval of `second` − `first`.
struct Difference {
  double first = 0, second = 0, low = 0, high = 0;

  double difference() const { return second - first; }
  /// The interval has 0 on its outside. False where it is not known (NaN).
  bool significant() const { return low > 0 || high < 0; }
};

/// The means over seeds, and what other rows of the same kind would have shown: the paired bootstrap (B.
/// Efron, 1979) of the measurements' groups of rows, 2,000 times, each drawn alike for all of them. All must
/// have measured the same rows in the same groups; `metric` and `other`: the metric's places in each side's.
/// NaN bounds where there are fewer than 20 groups with rows.
using Seeds = std::vector<const Measurement*>;
Difference compare_rows(const Seeds& first, const Seeds& second, size_t metric, size_t other);
/// Of shares of rows, whose measurements kept them; nothing for other metrics.
std::optional<Mcnemar> compare_answers(const Measurement& first, const Measurement& second, size_t metric,
                                       size_t other);

/// Mean and standard deviation (of a sample; NaN of one value alone).
struct Spread {
  double mean = 0, deviation = 0;
};
Spread spread_of(std::span<const double> values);

/// What other seeds would have shown.
struct SeedDifference : Difference {
  double p = 1;
  /// Seeds for each side, beside those that are there, with which a true difference of this size would be
  /// found in four of five cases; 0 where it is found already, or there is none.
  int64_t more = 0;
};
/// Welch's t-test (B. L. Welch, 1947) of a value from several seeds each. Nothing where a side has one alone.
std::optional<SeedDifference> compare_seeds(std::span<const double> first, std::span<const double> second);

}  // namespace millrace::eval
