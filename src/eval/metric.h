// Metrics of a model's outputs, gathered over the batches of a pass. Each kind is a file in
// src/eval/metrics/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/registry.h"

namespace millrace::eval {

/// What metrics see of a batch of one output. Only rows that have a target: others are left out.
struct Judged {
  /// [rows, width]: logits of the classes, labels or tokens; or predicted numbers, in the target's own unit.
  std::span<const float> outputs;
  int64_t rows = 0, width = 0;
  /// [rows], 0 … width − 1: the class or token of each row. Empty for other outputs.
  std::span<const int64_t> labels;
  /// [rows, width]: targets of numbers, in their own unit; of several labels, 1 where one holds and 0 where
  /// not. Else empty.
  std::span<const double> values;
  /// Of text that each row's target stands for; 0 where that says nothing.
  double bytes = 0;
  /// [rows, width]: predicted numbers instead of `outputs`, which f32 may round more than they are wrong.
  std::span<const double> predicted = {};

  double number(size_t i) const { return predicted.empty() ? static_cast<double>(outputs[i]) : predicted[i]; }
  /// One row, as a batch.
  Judged at(int64_t row) const;
  std::span<const float> logits(int64_t row) const {
    return outputs.subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
  }
};

/// What is known so far of one metric. Made of counts and of ExactSum: however rows are split into batches
/// and parts, and in whatever order those are added and merged, the result has the same bits.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual void update(const Judged& judged) = 0;
  /// Adds what another of the same kind has seen.
  virtual void merge(const Metric& other) = 0;
  /// Over all rows; NaN when there were none.
  virtual double finalize() const = 0;
};

/// `other`, which must be of this type.
template <typename Own>
const Own& same_metric(const Metric& other) {
  const auto* own = dynamic_cast<const Own*>(&other);
  MILLRACE_CHECK(own, "metrics of two kinds cannot be merged");
  return *own;
}

/// One kind of metric.
struct MetricKind {
  /// Where its 95 % interval comes from: wilson (wilson_interval()), for shares of rows; or jackknife, for
  /// all others: Measurement.
  enum Interval { wilson, jackknife };

  std::string name;
  std::string doc;
  /// Kinds of outputs that it applies to: "class" (one of several), "classes" (any of several), "number" (one
  /// or more), "tokens".
  std::vector<std::string> outputs;
  bool higher_is_better = false;
  bool share = false;  // shown in percent
  Interval interval = jackknife;
  std::unique_ptr<Metric> (*init)();
};

/// Defines a metric, at the beginning of a line of a file in src/eval/metrics/, in this namespace.
#define MILLRACE_METRIC(name)            \
  extern const MetricKind name##_metric; \
  const MetricKind name##_metric

Registry<MetricKind>& metric_kinds();
/// Names of the metrics that apply to any of these kinds of outputs.
std::vector<std::string> metrics_for(std::span<const std::string> outputs);

/// A metric's result, with its 95 % interval: NaN where the rows are too few to tell.
struct Measured {
  std::string name;
  double value = 0, low = 0, high = 0;
};

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

/// softmax of one row.
void softmax(std::span<const float> logits, std::vector<double>& probabilities);
/// The log of one class's softmax, exact where the probability itself underflows.
double log_probability(std::span<const float> logits, int64_t label);
/// The first of the greatest.
int64_t most_probable(std::span<const float> logits);

}  // namespace millrace::eval
