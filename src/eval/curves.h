// ROC and precision-recall curves of classes against the rest, and of labels: the scores that they are made
// of.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "eval/binned_scores.h"
#include "eval/metric.h"
#include "eval/tally.h"

namespace millrace::eval {

/// use(curve, score, whether it is positive) for all scores of a batch: of two classes one curve, that of the
/// second; of more one of each class against the rest, by the logit of its probability; of labels one of
/// each.
template <typename Use>
void each_score(const Judged& judged, Use&& use);

/// How many curves each_score() tells of.
inline int64_t curves_of(const Judged& judged) {
  return !judged.labels.empty() && judged.width == 2 ? 1 : judged.width;
}
/// log(p / (1 − p)) of each class.
void log_odds(std::span<const float> logits, std::vector<double>& odds);

/// Scores as they are: their number grows with the rows.
class KeptScores {
 public:
  explicit KeptScores(int64_t /*curves*/) {}
  void add(double score, bool positive) { (positive ? positive_ : negative_).push_back(score); }
  void merge(const KeptScores& other);
  /// From the highest score to the lowest; empty where a score is no number.
  std::vector<Tally> descending() const;
  bool told_apart() const { return true; }

 private:
  std::vector<double> positive_, negative_;
};

/// The share of pairs of a positive and a negative that are in order, where those of equal scores count half
/// (the area under the ROC curve); NaN where one kind is missing.
double area_under_roc(const std::vector<Tally>& descending);
/// The mean over positives of the precision at their score (average precision); NaN without positives.
double average_precision(const std::vector<Tally>& descending);
/// The same where those of one tally only stand for scores near each other: as if they came evenly mixed.
double mixed_average_precision(const std::vector<Tally>& descending);

/// The two areas of scores.
template <typename Scores>
double roc_area(const Scores& scores) {
  return area_under_roc(scores.descending());
}
template <typename Scores>
double precision_area(const Scores& scores) {
  const std::vector<Tally> descending = scores.descending();
  return scores.told_apart() ? average_precision(descending) : mixed_average_precision(descending);
}

/// The mean over curves; those that have none (a class that no row has) are left out.
template <typename Scores, double (*area)(const Scores&)>
class CurveMetric final : public Metric {
 public:
  void update(const Judged& judged) override {
    if (judged.rows == 0) return;
    const int64_t count = curves_of(judged);
    curves_.resize(static_cast<size_t>(count), Scores(count));
    each_score(judged,
               [&](size_t curve, double score, bool positive) { curves_[curve].add(score, positive); });
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<CurveMetric>(other);
    if (curves_.empty())
      curves_ = more.curves_;
    else if (!more.curves_.empty())
      for (size_t i = 0; i < curves_.size(); ++i) curves_[i].merge(more.curves_[i]);
  }
  double finalize() const override {
    double sum = 0, count = 0;
    for (const Scores& curve : curves_) {
      const double value = area(curve);
      if (value != value) continue;
      sum += value;
      ++count;
    }
    return sum / count;
  }

 private:
  std::vector<Scores> curves_;
};

template <typename Scores, double (*area)(const Scores&)>
MetricKind curve_metric(const char* name, const char* doc, const char* needs) {
  return {
      .name = name,
      .doc = doc,
      .outputs = {"class", "classes"},
      .higher_is_better = true,
      .lowest = 0,
      .highest = 1,
      .init = [] { return std::make_unique<CurveMetric<Scores, area>>(); },
      .needs = needs,
  };
}

template <typename Use>
void each_score(const Judged& judged, Use&& use) {
  const auto width = static_cast<size_t>(judged.width);
  for (size_t i = 0; i < judged.values.size(); ++i)
    use(i % width, static_cast<double>(judged.outputs[i]), judged.values[i] > 0.5);
  std::vector<double> odds;
  for (size_t row = 0; row < judged.labels.size(); ++row) {
    const auto label = static_cast<size_t>(judged.labels[row]);
    const std::span<const float> logits = judged.logits(static_cast<int64_t>(row));
    if (width == 2) {
      use(0, static_cast<double>(logits[1]) - static_cast<double>(logits[0]), label == 1);
      continue;
    }
    log_odds(logits, odds);
    for (size_t i = 0; i < width; ++i) use(i, odds[i], i == label);
  }
}

}  // namespace millrace::eval
