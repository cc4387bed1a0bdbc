#include "task/calibrate.h"

#include <algorithm>

#include "base/contains.h"
#include "base/format.h"
#include "base/suggest.h"
#include "task/calibrated.h"
#include "task/evaluate.h"

namespace millrace::task {
namespace {

const std::vector<std::string> calibration_methods = {"temperature", "isotonic", "threshold"};

bool method_applies(const std::string& method, const Output& output) {
  const eval::Link link = output.link();
  if (link == eval::Link::none) return false;
  if (method == "temperature") return true;
  if (output.at_places()) return false;
  return method == "isotonic" || link == eval::Link::sigmoid || output.width() == 2;
}

/// What is measured before and after: log loss, calibration error, and what was asked for.
std::vector<std::string> watched_metrics(const std::string& metric, const std::string& kind) {
  std::vector<std::string> names;
  for (const char* name : {"log-loss", "ece"})
    if (contains(eval::metric_kind(name).outputs, kind)) names.emplace_back(name);
  if (!metric.empty() && !contains(names, metric)) names.push_back(metric);
  return names;
}

/// Rows with calibrated logits. A part at a time: each is a computation of its own.
eval::KeptRows with_calibration(const Output& output, const eval::KeptRows& rows) {
  eval::KeptRows made = rows;
  if (!output.calibration().scales()) return made;
  constexpr int64_t together = 4096;
  for (int64_t first = 0; first < rows.rows(); first += together) {
    const int64_t count = std::min(together, rows.rows() - first);
    const auto begin = static_cast<std::ptrdiff_t>(first * rows.width),
               size = static_cast<std::ptrdiff_t>(count * rows.width);
    Array logits(f32, {count, rows.width});
    std::copy_n(rows.outputs.begin() + begin, size, logits.as<float>().begin());
    const Array after = calibrated(output, Tensor(logits)).to_array();
    std::copy_n(after.as<float>().begin(), size, made.outputs.begin() + begin);
  }
  return made;
}

std::vector<eval::Measured> measured_on(const eval::KeptRows& rows, const Output& output,
                                        const std::vector<std::string>& metrics) {
  eval::Measurement measurement(metrics, output.section().kind);
  const std::vector<double> thresholds = output.calibration().logit_thresholds();
  measurement.update(rows.judged(thresholds));
  return measurement.finalize();
}

Calibrated fit(Output& output, const eval::KeptRows& rows, const std::string& method,
               const std::string& metric) {
  if (rows.rows() == 0) fail<InputError>("there are no samples to calibrate on");
  const std::vector<std::string> metrics = watched_metrics(metric, output.section().kind);
  Calibrated result{output.name(), "", rows.rows(), measured_on(rows, output, metrics), {}, {}};
  eval::Calibration fitted = output.calibration();
  if (method == "temperature") fitted.temperature = eval::fit_temperature(rows);
  if (method == "isotonic") fitted.curves = eval::fit_curves(rows);
  if (method == "threshold") fitted.thresholds = eval::tune_thresholds(rows, eval::metric_kind(metric));
  if (method == "isotonic" && rows.rows() < 1000)
    result.notes.push_back(
        fmt::format("{} samples are few for isotonic calibration, which needs about 1,000: a temperature is "
                    "learnt of far fewer",
                    rows.rows()));
  if (method == "temperature" && (fitted.temperature > 900 || fitted.temperature < 1.1e-3))
    result.notes.emplace_back(
        "the best temperature is at the end of what was tried: all samples are right, or the logits say "
        "nothing");
  output.calibrate(fitted);
  result.what = calibration_text(fitted);
  result.after = measured_on(method == "threshold" ? rows : with_calibration(output, rows), output, metrics);
  return result;
}

/// What a threshold is tuned for, and what is printed.
std::string calibration_metric(const CalibrateOptions& options) {
  return options.metric.empty() && options.method == "threshold" ? "f1" : options.metric;
}

}  // namespace

std::vector<Output*> outputs_to_calibrate(const Task& task, const CalibrateOptions& options) {
  const std::string& method = options.method;
  if (!contains(calibration_methods, method))
    fail<InputError>("there is no method '{}'{} ({})", method, did_you_mean(method, calibration_methods),
                     fmt::join(calibration_methods, ", "));
  const std::string metric = calibration_metric(options);
  std::vector<Output*> fitted;
  for (const auto& output : task.outputs)
    if (method_applies(method, *output)) {
      if (!metric.empty()) (void)eval::Measurement({metric}, output->section().kind);
      fitted.push_back(output.get());
    }
  if (fitted.empty())
    fail<InputError>("{} does not apply: {}", method,
                     method == "threshold"  ? "a threshold decides between two classes, or of each label"
                     : method == "isotonic" ? "it is for classes or labels of whole samples"
                                            : "no output gives probabilities");
  return fitted;
}

std::vector<Calibrated> calibrate(Task& task, TaskFeed& set, const CalibrateOptions& options,
                                  const std::function<void(int64_t, int64_t)>& progress) {
  constexpr int64_t most_bytes = int64_t{1} << 29;
  const std::vector<Output*> fitted = outputs_to_calibrate(task, options);
  const std::string& method = options.method;
  const std::string metric = calibration_metric(options);
  for (Output* output : fitted) {
    eval::Calibration kept;
    if (method == "threshold") kept = output->calibration();
    kept.thresholds.clear();
    output->calibrate(kept);
  }
  std::vector<eval::KeptRows> rows(task.outputs.size());
  std::vector<bool> cut(task.outputs.size(), false);
  std::vector<std::string> none;
  Predictor predictor(task, false, Weights::trained);
  evaluate(predictor, task, set, none, progress, [&](size_t k, const eval::Judged& judged, int64_t) {
    if (!contains(fitted, task.outputs[k].get())) return;
    const auto bytes = static_cast<int64_t>((rows[k].outputs.size() + judged.outputs.size()) * sizeof(float));
    cut[k] = cut[k] || bytes > most_bytes;
    if (!cut[k]) rows[k].add(judged);
  });
  std::vector<Calibrated> results;
  for (size_t k = 0; k < task.outputs.size(); ++k) {
    if (!contains(fitted, task.outputs[k].get())) continue;
    results.push_back(fit(*task.outputs[k], rows[k], method, metric));
    if (cut[k])
      results.back().notes.push_back(
          fmt::format("fitted on the first {} only, which is what memory holds", rows[k].rows()));
  }
  return results;
}

}  // namespace millrace::task
