// What is fitted on top of a trained model: probabilities that mean what they say, and thresholds to decide
// at.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/metric.h>

namespace millrace::eval {

/// How logits become probabilities: of classes that exclude each other together, of labels each by itself.
enum class Link { none, softmax, sigmoid };

/// A curve through points, straight between them and level beyond them. Ascending x.
struct Curve {
  std::vector<double> x, y;
  double at(double where) const;
};

/// In the order in which it is applied.
struct Calibration {
  double temperature = 1;  // logits are divided by it
  /// Probabilities instead of what the link gives: of two classes that of the second, by the difference of
  /// their logits; of more that of each, by log_softmax, before they are made to sum to 1; of each label, by
  /// its logit. Empty: none.
  std::vector<Curve> curves = {};
  /// Probabilities from which on the second of two classes, or each label, is told. Empty: the more probable.
  std::vector<double> thresholds = {};

  bool scales() const { return temperature != 1 || !curves.empty(); }
  bool empty() const { return !scales() && thresholds.empty(); }
  /// The thresholds as differences of logits (Judged::thresholds), in f32 as logits are.
  std::vector<double> logit_thresholds() const;
};

/// Rows of a pass, as Measurement::listen() hands them on.
struct KeptRows {
  std::vector<float> outputs;
  int64_t width = 0;
  std::vector<int64_t> labels;
  std::vector<double> values;

  int64_t rows() const { return width ? static_cast<int64_t>(outputs.size()) / width : 0; }
  void add(const Judged& judged);
  Judged judged(std::span<const double> thresholds = {}) const;
  /// One label's column.
  KeptRows column(int64_t i) const;
};

/// The temperature of the least log loss (Guo et al., arXiv 1706.04599), between 1/1000 and 1000.
double fit_temperature(const KeptRows& rows);

/// The ascending curve of the least squared error (pool adjacent violators; rows of equal x are one): points
/// at both ends of each level part, as scikit-learn's IsotonicRegression keeps them.
Curve fit_isotonic(std::span<const double> x, std::span<const double> y);
/// fit_isotonic() of each class or label. No probability is 0 or 1: n rows cannot tell these from 1 / 2n.
std::vector<Curve> fit_curves(const KeptRows& rows);

/// The threshold of the best value of a metric, of each label by itself. Tried are places halfway between
/// neighbouring scores: 512 of them, and more around the best one. InputError where the metric does not
/// change.
std::vector<double> tune_thresholds(const KeptRows& rows, const MetricKind& metric);

}  // namespace millrace::eval
