#include "train/status.h"

#include "base/format.h"
#include "base/number_text.h"
#include "eval/metric.h"

namespace millrace::train {

std::string progress_text(double loss, const std::vector<NamedValue>& metrics) {
  std::string text = "loss " + number_text(loss);
  for (const auto& [name, value] : metrics) {
    const eval::MetricKind* const kind = eval::metric_kinds().find(name.substr(name.rfind('.') + 1));
    text += kind && kind->share ? fmt::format("  {} {:.2f} %", name, 100 * value)
                                : fmt::format("  {} {}", name, number_text(value));
  }
  return text;
}

}  // namespace millrace::train
