#include <cmath>
#include <vector>

#include "eval/metric.h"
#include "eval/sums_of_rows.h"

namespace millrace::eval {
namespace {

double brier_of_classes(const Judged& judged, int64_t row, std::vector<double>& probabilities) {
  softmax(judged.logits(row), probabilities);
  probabilities[static_cast<size_t>(judged.labels[static_cast<size_t>(row)])] -= 1;
  if (judged.width == 2) return probabilities[1] * probabilities[1];
  double sum = 0;
  for (const double error : probabilities) sum += error * error;
  return sum;
}

double brier_of_labels(const Judged& judged, int64_t row) {
  double sum = 0;
  for (int64_t i = row * judged.width; i < (row + 1) * judged.width; ++i) {
    const auto at = static_cast<size_t>(i);
    const double error = 1 / (1 + std::exp(-static_cast<double>(judged.outputs[at]))) - judged.values[at];
    sum += error * error;
  }
  return sum / static_cast<double>(judged.width);
}

}  // namespace

MILLRACE_METRIC(brier){
    .name = "brier",
    .doc =
        "Brier score, the squared error of probabilities: of two classes that of the second's, of more the "
        "sum over them, of labels the mean",
    .outputs = {"class", "classes"},
    .lowest = 0,
    .highest = 2,
    .init =
        [] {
          return mean_of_rows([work = std::vector<double>()](const Judged& judged, int64_t row) mutable {
            return judged.labels.empty() ? brier_of_labels(judged, row) : brier_of_classes(judged, row, work);
          });
        },
};

}  // namespace millrace::eval
