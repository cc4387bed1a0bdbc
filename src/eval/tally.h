// Positives and negatives of one score.
#pragma once

#include <cstdint>

namespace millrace::eval {

/// Positives and negatives of one score, or of scores that are not told apart.
struct Tally {
  int64_t positive = 0, negative = 0;
  void operator+=(const Tally& other) {
    positive += other.positive;
    negative += other.negative;
  }
};

}  // namespace millrace::eval
