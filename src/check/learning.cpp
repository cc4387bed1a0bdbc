#include "check/learning.h"

#include <chrono>
#include <cmath>

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
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (learning.last < limit.loss || (seconds > limit.seconds && learning.steps >= limit.least_steps)) break;
  }
  return learning;
}

}  // namespace millrace::check
