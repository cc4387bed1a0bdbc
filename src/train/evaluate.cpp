#include "train/evaluate.h"

#include <chrono>
#include <memory>

#include "eval/metric.h"

namespace millrace::train {

Evaluation evaluate(Predictor& predictor, TestSet& set, const std::vector<std::string>& names,
                    const std::function<void(int64_t, int64_t)>& progress) {
  const auto begin = std::chrono::steady_clock::now();
  eval::Metrics metrics(names);
  data::Loader& loader = *set.loader;
  data::Cursor start = loader.cursor();
  start.epoch = start.position = 0;
  loader.seek(start);
  const data::Extent& extent = loader.extent();
  Array pictures(u8, {loader.batch_size(), extent.channels, extent.height, extent.width});
  std::vector<int64_t> labels;
  const int64_t total = loader.source().count();
  for (int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const data::Batch& batch = loader.next();
    std::copy(batch.pictures.begin(), batch.pictures.end(), pictures.as<uint8_t>().begin());
    Array logits = predictor.logits(pictures);
    const auto classes = static_cast<size_t>(logits.shape()[1].size());
    const std::span<float> rows = logits.as<float>();
    labels.clear();
    for (int64_t n = 0; n < batch.valid; ++n) {
      const auto at = static_cast<size_t>(n);
      if (batch.indices[at] != batch.start.position + n) continue;  // stands in for one that cannot be read
      std::copy_n(rows.begin() + at * classes, classes, rows.begin() + labels.size() * classes);
      labels.push_back(set.labels[static_cast<size_t>(batch.labels[at])]);
    }
    if (labels.empty()) continue;
    metrics.add(rows.first(labels.size() * classes), labels);
    if (progress) progress(metrics.count(), total);
  }
  return {metrics.values(), metrics.count(),
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

}  // namespace millrace::train
