#include "eval/class_tally.h"

#include <limits>

namespace millrace::eval {

void ClassTally::update(const Judged& judged, int64_t first) {
  const auto width = static_cast<size_t>(judged.width);
  for (int64_t row = 0; row < judged.rows; ++row) {
    counts_[static_cast<size_t>((first + row) % groups)].update(judged.part(row, 1));
    if (judged.labels.empty()) continue;
    confusion_.resize(width * width);
    ++confusion_[static_cast<size_t>(judged.labels[static_cast<size_t>(row)]) * width +
                 static_cast<size_t>(judged.told(row))];
  }
}

std::vector<ClassMeasured> ClassTally::finalize() const {
  LabelCounts all;
  bool each = true;  // has rows
  for (const LabelCounts& group : counts_) {
    all.merge(group);
    each &= group.rows > 0;
  }
  const auto measured = [&](const char* name, LabelShare share, size_t i) -> Measured {
    const double value = label_share(share, all.right[i], all.told[i], all.holding[i]);
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    if (!each) return {name, value, unknown, unknown};
    std::array<double, groups> without{};
    for (size_t g = 0; g < without.size(); ++g)
      without[g] = label_share(share, all.right[i] - counts_[g].right[i], all.told[i] - counts_[g].told[i],
                               all.holding[i] - counts_[g].holding[i]);
    const auto [low, high] = jackknife_interval(value, without);
    return {name, value, low, high};
  };
  std::vector<ClassMeasured> classes(all.right.size());
  for (size_t i = 0; i < classes.size(); ++i)
    classes[i] = {all.holding[i], all.told[i], measured("precision", LabelShare::precision, i),
                  measured("recall", LabelShare::recall, i), measured("f1", LabelShare::f1, i)};
  return classes;
}

}  // namespace millrace::eval
