#include "eval/metric.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/suggest.h"

namespace millrace::eval {

std::span<const MetricKind* const> metric_kinds() {
  static const std::vector<const MetricKind*> kinds = {&accuracy_kind, &log_loss_kind,   &top_5_kind,
                                                       &ece_kind,      &perplexity_kind, &bits_per_byte_kind};
  return kinds;
}

const MetricKind& metric_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const MetricKind* kind : metric_kinds()) {
    if (kind->name == name) return *kind;
    names.push_back(kind->name);
  }
  fail<InputError>("there is no metric '{}'; did you mean '{}'? ({})", name, nearest(name, names),
                   fmt::join(names, ", "));
}

void softmax(std::span<const float> logits, std::vector<double>& probabilities) {
  probabilities.resize(logits.size());
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += probabilities[i] = std::exp(logits[i] - largest);
  for (double& p : probabilities) p /= sum;
}

Metrics::Metrics(const std::vector<std::string>& names, double bytes) : bytes_(bytes) {
  for (const std::string& name : names) metrics_.emplace_back(name, metric_kind(name).make());
}

void Metrics::add(std::span<const float> logits, std::span<const int64_t> labels) {
  if (labels.empty()) return;
  const size_t classes = logits.size() / labels.size();
  for (size_t row = 0; row < labels.size(); ++row) {
    const auto values = logits.subspan(row * classes, classes);
    softmax(values, probabilities_);
    const auto best = std::max_element(values.begin(), values.end());
    double sum = 0;
    for (const float value : values) sum += std::exp(static_cast<double>(value) - *best);
    const auto label = static_cast<size_t>(labels[row]);
    const Judged judged{probabilities_, static_cast<double>(values[label]) - *best - std::log(sum),
                        labels[row], best - values.begin(), bytes_};
    for (const auto& [name, metric] : metrics_) metric->add(judged);
    ++count_;
  }
}

std::vector<std::pair<std::string, double>> Metrics::values() const {
  std::vector<std::pair<std::string, double>> result;
  for (const auto& [name, metric] : metrics_) result.emplace_back(name, metric->value());
  return result;
}

std::pair<double, double> wilson_interval(double share, int64_t n) {
  if (n == 0) return {0, 1};
  constexpr double z = 1.959963984540054;
  const double count = static_cast<double>(n), centre = (share + z * z / (2 * count)) / (1 + z * z / count);
  const double half =
      z / (1 + z * z / count) * std::sqrt(share * (1 - share) / count + z * z / (4 * count * count));
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

}  // namespace millrace::eval
