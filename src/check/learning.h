// Short trainings of what is checked.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <millrace/array.h>

#include "check/context.h"

namespace millrace::check {

/// How a short training went.
struct Learning {
  double first = 0, last = 0;  // mean loss of the first and of the last round through the batches
  int64_t steps = 0;
  double lr = 0;
  bool finite = true;
};

/// Where to stop: at that loss, after so many steps, or after so many seconds and steps.
struct LearningLimit {
  double loss = 0;
  int64_t steps = 200;
  double seconds = 4;
  int64_t least_steps = 24;  // on a slow machine, too
};

/// Trains from the drawn weights on these batches, over and over, `round` of which make a round.
Learning learn(Context& context, const std::function<const std::vector<Array>&(size_t)>& batch, size_t round,
               double lr, const LearningLimit& limit);

}  // namespace millrace::check
