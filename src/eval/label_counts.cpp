#include "eval/label_counts.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "base/format.h"

namespace millrace::eval {
namespace {

double label_average(LabelShare share, Average average, const LabelCounts& counts) {
  if (counts.rows == 0) return NAN;
  const auto& [right, told, holding, rows, exclusive] = counts;
  if (average == Average::usual && exclusive && right.size() == 2)
    return label_share(share, right[1], told[1], holding[1]);
  if (average == Average::micro || (average == Average::usual && !exclusive)) {
    const auto sum = [](const std::vector<int64_t>& list) {
      return std::accumulate(list.begin(), list.end(), int64_t{0});
    };
    return label_share(share, sum(right), sum(told), sum(holding));
  }
  double sum = 0, classes = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    if (exclusive && told[i] + holding[i] == 0) continue;
    sum += label_share(share, right[i], told[i], holding[i]);
    ++classes;
  }
  return sum / classes;
}

class MetricOfLabelCounts final : public Metric {
 public:
  explicit MetricOfLabelCounts(std::function<double(const LabelCounts&)> value) : value_(std::move(value)) {}
  void update(const Judged& judged) override { counts_.update(judged); }
  void merge(const Metric& other) override { counts_.merge(same_metric<MetricOfLabelCounts>(other).counts_); }
  double finalize() const override { return value_(counts_); }

 private:
  std::function<double(const LabelCounts&)> value_;
  LabelCounts counts_;
};

}  // namespace

void LabelCounts::update(const Judged& judged) {
  if (judged.rows == 0) return;
  const auto width = static_cast<size_t>(judged.width);
  if (right.empty())
    for (std::vector<int64_t>* counts : {&right, &told, &holding}) counts->resize(width);
  MILLRACE_CHECK(right.size() == width, "{} classes after {}", width, right.size());
  exclusive = !judged.labels.empty();
  for (int64_t row = 0; exclusive && row < judged.rows; ++row) {
    const auto is = static_cast<size_t>(judged.labels[static_cast<size_t>(row)]),
               said = static_cast<size_t>(judged.told(row));
    ++told[said];
    ++holding[is];
    right[is] += said == is;
  }
  for (size_t i = 0; i < judged.values.size(); ++i) {
    const bool said = judged.told_to_hold(i), holds = judged.values[i] > 0.5;
    right[i % width] += said && holds;
    told[i % width] += said;
    holding[i % width] += holds;
  }
  rows += judged.rows;
}

void LabelCounts::merge(const LabelCounts& other) {
  if (other.rows == 0) return;
  if (rows == 0) {
    *this = other;
    return;
  }
  for (size_t i = 0; i < right.size(); ++i) {
    right[i] += other.right[i];
    told[i] += other.told[i];
    holding[i] += other.holding[i];
  }
  rows += other.rows;
}

double label_share(LabelShare share, int64_t right, int64_t told, int64_t holding) {
  const auto part = [](int64_t times, int64_t of) {
    return of ? static_cast<double>(times) / static_cast<double>(of) : 0.0;
  };
  if (share == LabelShare::precision) return part(right, told);
  if (share == LabelShare::recall) return part(right, holding);
  return part(2 * right, told + holding);
}

MetricKind label_share_metric(LabelShare share, Average average, const char* name, const char* doc) {
  const auto value = [=](const LabelCounts& counts) { return label_average(share, average, counts); };
  return {
      .name = name,
      .doc = doc,
      .outputs = {"class", "classes"},
      .higher_is_better = true,
      .lowest = 0,
      .highest = 1,
      .init = [value] { return label_counts_metric(value); },
  };
}

std::unique_ptr<Metric> label_counts_metric(std::function<double(const LabelCounts& counts)> value) {
  return std::make_unique<MetricOfLabelCounts>(std::move(value));
}

}  // namespace millrace::eval
