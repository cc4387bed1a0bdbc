// Short trainings of what is checked.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <millrace/array.h>

#include "check/context.h"

namespace millrace::check {

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

/// The learning rate for batches of so few rows as checks take: the recipe's is one of whole batches and of
/// warm-up, so that where the loss does not fall with it in some steps a tenth or a hundredth is taken. Of a
/// subject of C++ its own.
double small_batch_rate(Context& context);
/// A short training on new batches, which is done once, and how it went; the weights are then those after it.
const Learning& learn_new_batches(Context& context);

}  // namespace millrace::check
