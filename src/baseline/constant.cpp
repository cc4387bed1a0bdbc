// The same for every sample: how often each class occurs, or the mean.
#include <algorithm>
#include <cmath>

#include "baseline/context.h"

namespace millrace::baseline {
namespace {

std::vector<float> constant_logits(Context& context, size_t output) {
  const task::Output& of = *context.task().outputs[output];
  std::vector<float> logits;
  constexpr double least = 1e-9;
  if (of.link() == eval::Link::softmax) {
    for (const double share : context.shares(output))
      logits.push_back(static_cast<float>(std::log(std::max(share, least))));
    return logits;
  }
  const PartRows& rows = context.targets(output, false);
  const Array& array = rows.arrays[0];
  const std::span<const float> values = array.as<float>();
  const auto width = static_cast<size_t>(of.width());
  for (size_t c = 0; c < width; ++c) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < rows.good.size(); ++i)
      if (rows.good[i]) {
        sum += static_cast<double>(values[i * width + c]);
        ++count;
      }
    const double mean = sum / std::max(1.0, count);
    if (of.link() != eval::Link::sigmoid) {
      logits.push_back(static_cast<float>(mean));
      continue;
    }
    const double share = std::clamp(mean, least, 1 - least);
    logits.push_back(static_cast<float>(std::log(share / (1 - share))));
  }
  return logits;
}

Result run_constant(Context& context) {
  std::vector<std::vector<float>> logits;
  for (size_t k = 0; k < context.task().outputs.size(); ++k) logits.push_back(constant_logits(context, k));
  return {.metrics = context.judged_constant(logits)};
}

}  // namespace

MILLRACE_BASELINE(constant){
    .name = "constant",
    .doc =
        "the same for every sample: classes as often as they occur in training (so the most frequent one is "
        "told), the mean of numbers",
    .place = 10,
    .run = run_constant,
    .same_for_all = true,
};

}  // namespace millrace::baseline
