#include "task/judge_labels.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"

namespace millrace::task {

std::span<const int64_t> labels_in(std::span<const std::byte> targets) {
  return {reinterpret_cast<const int64_t*>(targets.data()), targets.size() / sizeof(int64_t)};
}

void judge_labels(std::span<const float> logits, std::span<const std::byte> targets, int64_t places,
                  int64_t width, const std::vector<char>& rows, double bytes, eval::Measurement& into,
                  std::span<const double> thresholds) {
  const std::span<const int64_t> all = labels_in(targets);
  const auto each = static_cast<size_t>(std::max<int64_t>(places, 1)), wide = static_cast<size_t>(width);
  MILLRACE_CHECK(all.size() == rows.size() * each && logits.size() == all.size() * wide,
                 "{} rows of {} places with {} targets and {} logits", rows.size(), each, all.size(),
                 logits.size());
  std::vector<int64_t> labels;
  std::vector<float> kept;
  labels.reserve(all.size());
  size_t next = 0;  // all before it were kept: as long as that is so, nothing is copied
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] < 0 || !rows[i / each]) continue;
    if (labels.size() == next && next == i) {
      ++next;
    } else {
      if (kept.empty()) kept.assign(logits.begin(), logits.begin() + static_cast<int64_t>(next * wide));
      kept.insert(kept.end(), logits.begin() + static_cast<int64_t>(i * wide),
                  logits.begin() + static_cast<int64_t>((i + 1) * wide));
    }
    labels.push_back(all[i]);
  }
  const std::span<const float> outputs =
      labels.size() == next ? logits.first(next * wide) : std::span<const float>(kept);
  into.update({.outputs = outputs,
               .rows = static_cast<int64_t>(labels.size()),
               .width = width,
               .labels = labels,
               .values = {},
               .bytes = bytes,
               .thresholds = thresholds});
}

std::vector<size_t> most_probable(const std::vector<double>& probabilities, int64_t top) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t count = std::min(order.size(), static_cast<size_t>(std::max<int64_t>(top, 1)));
  const auto better = [&](size_t x, size_t y) {
    return probabilities[x] != probabilities[y] ? probabilities[x] > probabilities[y] : x < y;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(count), order.end(), better);
  order.resize(count);
  return order;
}

}  // namespace millrace::task
