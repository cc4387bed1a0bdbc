// Metrics of a model on a labelled set.
#pragma once

#include <functional>
#include <vector>

#include <millrace/evaluation.h>

#include "eval/metric.h"
#include "task/feeds.h"
#include "task/predictor.h"

namespace millrace::task {

/// Goes once through the set, from its beginning. Samples that stand in for bad ones count once. `progress`:
/// (batches done, in all).
Evaluation evaluate(Predictor& predictor, const Task& task, TaskFeed& set,
                    const std::function<void(int64_t, int64_t)>& progress = nullptr);
/// Gets what the metrics get of an output's rows, by its place in the task, and the number of the first one.
using OnJudged = std::function<void(size_t output, const eval::Judged& judged, int64_t first)>;
/// Gets each batch with the logits of each output.
using OnBatch = std::function<void(const data::FeedBatch& batch, std::span<const Array> logits)>;
/// The same with other metrics.
Evaluation evaluate(Predictor& predictor, const Task& task, TaskFeed& set,
                    const std::vector<std::string>& metrics,
                    const std::function<void(int64_t, int64_t)>& progress = nullptr,
                    const OnJudged& on_judged = nullptr, const OnBatch& on_batch = nullptr);

/// What comparisons of two models need: of each output the metrics that `metrics` names, in so many groups of
/// rows, where a row's number is its sample's. So two measurements of one set have the same rows in the same
/// groups.
struct OutputMeasurement {
  std::string prefix;  // of the output's metrics: "price."
  eval::Measurement measured;
};
std::vector<OutputMeasurement> measure_by_sample(
    Predictor& predictor, const Task& task, TaskFeed& set, const std::vector<std::string>& metrics,
    int64_t groups, const std::function<void(int64_t, int64_t)>& progress = nullptr);

/// "97.31 %", "0.0912"; "-" where a metric has no value.
std::string metric_text(const std::string& name, double value);
/// Why it has none: "not defined: it needs rows of a class and rows of others".
std::string undefined_text(const std::string& name);
/// "accuracy 97.31 %  log-loss 0.0912"
std::string metrics_text(const std::vector<eval::Measured>& metrics);
/// The kind of a metric by its name in Task::metrics().
const eval::MetricKind& metric_of(const std::string& name);

}  // namespace millrace::task
