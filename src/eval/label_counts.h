// How often each class, or label, is told, holds, and both: what precision, recall and F1 are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "eval/metric.h"

namespace millrace::eval {

struct LabelCounts {
  std::vector<int64_t> right, told, holding;
  int64_t rows = 0;
  bool exclusive = false;  // one class a row, not labels that hold or not

  void update(const Judged& judged);
  void merge(const LabelCounts& other);
};

enum class LabelShare { precision, recall, f1 };
/// 0 where the divisor is 0, as scikit-learn has it.
double label_share(LabelShare share, int64_t right, int64_t told, int64_t holding);

/// micro: of all classes or labels together. macro: the mean over them; classes that no row has and none is
/// told to have are left out. usual: of two classes that of the second, of more macro, of labels micro.
enum class Average { usual, micro, macro };
/// The metric of that share: NaN without rows.
MetricKind label_share_metric(LabelShare share, Average average, const char* name, const char* doc);
/// A metric that is `value` of what was counted.
std::unique_ptr<Metric> label_counts_metric(std::function<double(const LabelCounts& counts)> value);

}  // namespace millrace::eval
