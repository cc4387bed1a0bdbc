// What outputs whose targets are numbers of classes (or tokens) share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/metric.h"

namespace millrace::task {

/// Adds rows of a batch to the metrics: `logits` (rows × places × width) against `targets` i64 (rows ×
/// places). Those of rows that do not count, and where the target is -1, are left out.
void judge_labels(std::span<const float> logits, std::span<const std::byte> targets, int64_t places,
                  int64_t width, const std::vector<char>& rows, double bytes, eval::Measurement& into,
                  std::span<const double> thresholds = {});
/// Targets i64.
std::span<const int64_t> labels_in(std::span<const std::byte> targets);
/// The `top` most probable, at least one; of equals the first.
std::vector<size_t> most_probable(const std::vector<double>& probabilities, int64_t top);

}  // namespace millrace::task
