// Does the loss that is trained on say how good the model becomes?
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace::train {

/// Of each evaluation so far the training loss of its epoch, and a metric of the test set.
struct LossProxy {
  std::vector<double> losses, values;
  bool higher_is_better = false;

  /// Spearman's rank correlation, 1 where a lower loss always goes with a better metric; NaN where there is
  /// nothing to compare.
  double correlation() const;
};

/// What metrics.jsonl has of epochs.
LossProxy read_loss_proxy(const std::filesystem::path& metrics, const std::string& metric,
                          bool higher_is_better);
/// A line where there are at least five evaluations and the correlation is below 0.5; else "". `chosen`: the
/// best checkpoint is chosen by the metric already.
std::string loss_proxy_text(const LossProxy& proxy, const std::string& metric, bool chosen);

}  // namespace millrace::train
