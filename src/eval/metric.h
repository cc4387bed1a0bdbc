// Metrics gathered over the batches of a pass. Each kind is a file in src/eval/metrics/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/metric.h>

#include "base/registry.h"

namespace millrace::eval {

/// Defines a metric, at the beginning of a line of a file in src/eval/metrics/, in this namespace.
#define MILLRACE_METRIC(name)            \
  extern const MetricKind name##_metric; \
  const MetricKind name##_metric

Registry<MetricKind>& metric_kinds();
/// Names of the metrics that apply to any of these kinds of outputs.
std::vector<std::string> metrics_for(std::span<const std::string> outputs);

/// Several metrics of one output at once.
///
/// Intervals other than Wilson's: the delete-one-group jackknife. Row i of the pass belongs to group i mod
/// 20; a metric is taken over all groups but one, for each of them, and ± 1.96 standard errors of that make
/// the interval, which is NaN where a group is empty: below 20 rows. It takes rows for independent, so for
/// tokens, which are not, it is too narrow; and it is symmetric, so it may reach beyond the values that a
/// metric can have.
class Measurement {
 public:
  static constexpr int64_t groups = 20;

  /// InputError when there is no such metric, or it does not apply to this kind of output
  /// (MetricKind::outputs).
  Measurement(const std::vector<std::string>& names, const std::string& output_kind);

  /// The row of the pass that update() goes on with, 0 at first: who measures a part of a pass says where it
  /// begins, and merged parts give the same bits as the whole.
  void at(int64_t row) { next_ = row; }
  void update(const Judged& judged);
  /// Adds the rows of another measurement with the same metrics.
  void merge(const Measurement& other);

  /// In the order of the names.
  std::vector<Measured> finalize() const;
  /// Rows.
  int64_t count() const;

 private:
  /// A metric over all groups but `left_out`; −1: over all.
  double value(size_t metric, int64_t left_out) const;
  std::pair<double, double> interval(size_t metric, double value) const;

  std::optional<bool> labelled_;  // its batches have labels, not values; unknown before the first
  std::vector<const MetricKind*> kinds_;
  std::vector<std::array<std::unique_ptr<Metric>, groups>> metrics_;
  std::array<int64_t, groups> rows_{};
  int64_t next_ = 0;
};

/// Wilson's 95 % interval of a share of n (E. B. Wilson, 1927).
std::pair<double, double> wilson_interval(double share, int64_t n);

}  // namespace millrace::eval
