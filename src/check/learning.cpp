#include "check/learning.h"

#include <chrono>
#include <cmath>

#include "base/seconds_since.h"

namespace millrace::check {

Learning learn(Context& context, const std::function<const std::vector<Array>&(size_t)>& batch, size_t round,
               double lr, const LearningLimit& limit) {
  (void)context.step();
  const auto begin = std::chrono::steady_clock::now();
  Learning learning;
  learning.lr = lr;
  double sum = 0;
  for (size_t i = 0; static_cast<int64_t>(i) < limit.steps; ++i) {
    sum += context.train(batch(i), lr);
    ++learning.steps;
    if (!std::isfinite(sum)) {
      learning.finite = false;
      learning.last = sum;
      break;
    }
    if ((i + 1) % round != 0) continue;
    learning.last = sum / static_cast<double>(round);
    if (i + 1 == round) learning.first = learning.last;
    sum = 0;
    const double seconds = seconds_since(begin);
    if (learning.last < limit.loss || (seconds > limit.seconds && learning.steps >= limit.least_steps)) break;
  }
  return learning;
}

double small_batch_rate(Context& context) {
  std::optional<double>& rate = context.short_training.rate;
  if (rate) return *rate;
  const double lr = context.subject().lr;
  rate = lr;
  if (!context.task()) return lr;
  constexpr size_t batches = 2;
  constexpr int64_t steps = 12;
  double best = INFINITY;
  for (const double scale : {1.0, 0.1, 0.01}) {
    const Learning learning =
        learn(context, [&](size_t i) -> const std::vector<Array>& { return context.batch(i % batches); },
              batches, lr* scale, {.loss = -INFINITY, .steps = steps, .seconds = 2, .least_steps = steps});
    if (learning.finite && learning.last < best) {
      best = learning.last;
      rate = lr * scale;
    }
    // The first round is over when its mean is known, so that a rise within it counts, too.
    const double begins = std::isfinite(context.subject().ignorance) && context.subject().ignorance > 0
                              ? std::min(context.subject().ignorance, learning.first)
                              : learning.first;
    if (learning.finite && learning.last < 0.97 * begins) break;
  }
  context.reset();
  return *rate;
}

const Learning& learn_new_batches(Context& context) {
  Context::Short& known = context.short_training;
  if (known.weights.empty()) {
    const double rate = small_batch_rate(context);
    known.learning =
        learn(context, [&](size_t) -> const std::vector<Array>& { return context.fresh_batch(); }, 8, rate,
              {.loss = -INFINITY, .steps = 160, .seconds = 3, .least_steps = 8});
    known.weights = context.weights();
  }
  context.set_weights(known.weights);
  return known.learning;
}

}  // namespace millrace::check
