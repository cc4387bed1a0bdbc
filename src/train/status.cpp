#include "train/status.h"

#include "base/format.h"
#include "base/number_text.h"
#include "eval/metric.h"

namespace millrace::train {

std::string metric_text(const NamedValue& metric) {
  const auto& [name, value] = metric;
  const eval::MetricKind* const kind = eval::find_metric(name.substr(name.rfind('.') + 1));
  return kind && kind->share ? fmt::format("{} {:.2f} %", name, 100 * value)
                             : fmt::format("{} {}", name, number_text(value));
}

std::string progress_text(double loss, const std::vector<NamedValue>& metrics) {
  std::string text = "loss " + number_text(loss);
  for (const NamedValue& metric : metrics) text += "  " + metric_text(metric);
  return text;
}

}  // namespace millrace::train
