// Scores of a curve in memory that does not grow with the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "eval/tally.h"

namespace millrace::eval {

/// Scores as they are until more of them differ than there is room for, then in bins of a power of two of
/// neighbouring doubles, so many that they just fit: as narrow where all scores lie close together as where
/// they do not. Which bins there are depends on the scores alone, not on their order nor on how they were
/// split over states that are merged.
class BinnedScores {
 public:
  /// Of so many curves all together take some megabytes.
  explicit BinnedScores(int64_t curves);
  void add(double score, bool positive);
  void merge(const BinnedScores& other);
  /// From the highest score to the lowest; empty where a score is no number.
  std::vector<Tally> descending() const;
  /// Whether each of these is of one score.
  bool told_apart() const;

 private:
  struct Bin {
    int64_t at;  // the place of its scores among all doubles, over 2^shift_
    Tally tally;
  };
  /// Sorts in what was added, and makes bins wider until they fit.
  void settle();
  /// That, once as much was added as there is room for.
  void settle_full();

  size_t room_;
  int shift_ = 0;
  size_t settled_ = 0;     // of bins_: in ascending order
  std::vector<Bin> bins_;  // then scores as they came
  bool nan_ = false;
};

}  // namespace millrace::eval
