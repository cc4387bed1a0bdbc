// Metrics of a model on a labelled set.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/feed/feed.h"
#include "eval/metric.h"
#include "train/session.h"

namespace millrace::train {

struct Evaluation {
  std::vector<eval::Measured> metrics;  // in the order of the names
  int64_t count = 0;                    // targets
  double seconds = 0;
};

/// Goes once through the set, from its beginning. `progress`: (batches done, in all). InputError when a
/// metric is none of classes or, where the set's targets are those, of tokens.
Evaluation evaluate(Predictor& predictor, data::Feed& set, const std::vector<std::string>& metrics,
                    const std::function<void(int64_t, int64_t)>& progress = nullptr);

}  // namespace millrace::train
