// What an evaluation says of each class, or label, and which are taken for which.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "eval/label_counts.h"

namespace millrace::eval {

/// Counts as Measurement::listen() hands on rows.
class ClassTally {
 public:
  void update(const Judged& judged, int64_t first);
  /// Intervals are the jackknife's (Measurement).
  std::vector<ClassMeasured> finalize() const;
  /// [true class][told class]: rows; empty of labels, which do not exclude each other.
  const std::vector<int64_t>& confusion() const { return confusion_; }

 private:
  static constexpr int64_t groups = Measurement::groups;
  std::array<LabelCounts, groups> counts_;
  std::vector<int64_t> confusion_;
};

}  // namespace millrace::eval
