#include "train/evaluate.h"

#include <chrono>
#include <span>

namespace millrace::train {

Evaluation evaluate(Predictor& predictor, data::Feed& set, const std::vector<std::string>& names,
                    const std::function<void(int64_t, int64_t)>& progress) {
  const auto begin = std::chrono::steady_clock::now();
  eval::Measurement metrics(names, set.classes().empty() ? "tokens" : "class");
  data::Cursor start = set.cursor();
  start.epoch = start.position = 0;
  set.seek(start);
  std::vector<int64_t> labels;
  const int64_t total = set.batches_per_epoch();
  for (int64_t i = 0; i < total; ++i) {
    const data::FeedBatch& batch = set.next();
    Array logits = predictor.logits(set, batch);
    const auto classes = static_cast<size_t>(logits.shape().back().size());
    const std::span<float> rows = logits.as<float>();
    labels.clear();
    for (size_t n = 0; n < batch.targets.size(); ++n) {
      if (batch.targets[n] < 0) continue;
      if (labels.size() != n)
        std::copy_n(rows.begin() + n * classes, classes, rows.begin() + labels.size() * classes);
      labels.push_back(batch.targets[n]);
    }
    metrics.update({.outputs = rows.first(labels.size() * classes),
                    .rows = static_cast<int64_t>(labels.size()),
                    .width = static_cast<int64_t>(classes),
                    .labels = labels,
                    .values = {},
                    .bytes = set.bytes_per_target()});
    if (progress) progress(i + 1, total);
  }
  return {metrics.finalize(), metrics.count(),
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

}  // namespace millrace::train
