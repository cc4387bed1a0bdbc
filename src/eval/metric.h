// Metrics gathered over the batches of a pass. Each kind is a file in src/eval/metrics/.
#pragma once

#include <cstdint>
#include <functional>
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
/// The metric of that name, also one that is told from others by its number: "top-10". Null for none.
const MetricKind* find_metric(const std::string& name);
/// The same; InputError names the nearest.
const MetricKind& metric_kind(const std::string& name);
/// Names of the metrics that apply to any of these kinds of outputs.
std::vector<std::string> metrics_for(std::span<const std::string> outputs);

/// Of an estimate, by what it is without each of the groups of rows; NaN where one of these is not known.
std::pair<double, double> jackknife_interval(double value, std::span<const double> without);

/// Several metrics of one output at once.
///
/// Intervals other than Wilson's: the delete-one-group jackknife. Row i of the pass belongs to group i mod
/// 20; a metric is taken over all groups but one, for each of them, and ± 1.96 standard errors of that make
/// the interval, which is NaN where a group is empty: below 20 rows. It takes rows for independent, so for
/// tokens, which are not, it is too narrow; and it is symmetric, so it may reach beyond the values that a
/// metric can have. Where rows belong to queries, these take the place of rows.
class Measurement {
 public:
  static constexpr int64_t groups = 20;

  /// InputError when there is no such metric, or it does not apply to this kind of output
  /// (MetricKind::outputs). `parts`: another number of groups, for what compares two models by more of them.
  Measurement(const std::vector<std::string>& names, const std::string& output_kind, int64_t parts = groups);

  /// The row of the pass that update() goes on with, 0 at first: who measures a part of a pass says where it
  /// begins, and merged parts give the same bits as the whole.
  /// `step`: from one row to the next; 0 where all that follows belongs together, as the tokens of a text.
  void at(int64_t row, int64_t step = 1) {
    next_ = row;
    step_ = step;
  }
  void update(const Judged& judged);
  /// Who else is to see what update() gets, and the number of its first row.
  void listen(std::function<void(const Judged& judged, int64_t first)> listener) {
    listener_ = std::move(listener);
  }
  /// Adds the rows of another measurement with the same metrics.
  void merge(const Measurement& other);

  /// In the order of the names.
  std::vector<Measured> finalize() const;
  /// Rows, or queries.
  int64_t count() const;

  // ---- for comparisons (compare.h)

  /// The same metrics and groups, of no rows yet.
  Measurement empty() const;
  const std::vector<const MetricKind*>& kinds() const { return kinds_; }
  int64_t parts() const { return static_cast<int64_t>(rows_.size()); }
  int64_t rows_in(size_t group) const { return rows_[group]; }
  /// A metric where group i has been seen times[i] times.
  double resampled(size_t metric, std::span<const int> times) const;
  /// Of shares of rows (MetricKind::wilson) what each row is by itself, by the row's number, once this is on:
  /// 1 or 0, NaN of rows that were not seen.
  void keep_rows() { keep_rows_ = true; }
  const std::vector<float>& rows_of(size_t metric) const { return kept_[metric]; }

 private:
  Measurement() = default;
  void begin(size_t groups_wanted);
  /// A metric over all groups but `left_out`; −1: over all.
  double value(size_t metric, int64_t left_out) const;
  std::pair<double, double> interval(size_t metric, double value) const;
  void keep_row(int64_t number, const Judged& row);

  std::optional<bool> labelled_;  // its batches have labels, not values; unknown before the first
  std::vector<const MetricKind*> kinds_;
  std::vector<std::vector<std::unique_ptr<Metric>>> metrics_;  // of each group
  std::vector<int64_t> rows_;
  int64_t next_ = 0, step_ = 1;
  bool keep_rows_ = false;
  std::vector<std::vector<float>> kept_;
  std::function<void(const Judged&, int64_t)> listener_;
};

/// Wilson's 95 % interval of a share of n (E. B. Wilson, 1927).
std::pair<double, double> wilson_interval(double share, int64_t n);

}  // namespace millrace::eval
