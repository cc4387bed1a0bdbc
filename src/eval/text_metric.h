// Metrics of generated texts.
#pragma once

#include <memory>
#include <utility>

#include "eval/metric.h"
#include "eval/text_metrics.h"

namespace millrace::eval {

/// A metric that goes by what `Gathered` (Bleu, Rouge …) says.
template <typename Gathered>
class TextMetric final : public Metric {
 public:
  explicit TextMetric(Gathered gathered) : gathered_(std::move(gathered)) {}
  void update(const Judged& judged) override {
    for (size_t i = 0; i < judged.generated.size(); ++i)
      gathered_.add(judged.generated[i], judged.references[i]);
  }
  void merge(const Metric& other) override { gathered_.merge(same_metric<TextMetric>(other).gathered_); }
  double finalize() const override { return gathered_.value(); }

 private:
  Gathered gathered_;
};

template <typename Gathered>
std::unique_ptr<Metric> text_metric(Gathered gathered) {
  return std::make_unique<TextMetric<Gathered>>(std::move(gathered));
}

/// The metric whose state begins as a copy of `begin`: more alike is better, from 0 to `highest`.
template <typename Gathered>
MetricKind text_similarity(const char* name, const char* doc, double highest, Gathered begin) {
  return {
      .name = name,
      .doc = doc,
      .outputs = {"tokens"},
      .higher_is_better = true,
      .lowest = 0,
      .highest = highest,
      .texts = true,
      .init = [begin] { return text_metric(begin); },
  };
}

}  // namespace millrace::eval
