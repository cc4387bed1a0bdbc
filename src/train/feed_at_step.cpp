#include "train/feed_at_step.h"

#include <utility>

#include "base/format.h"
#include "train/trainer_state.h"

namespace millrace::train {

task::Opened open_at_step(task::Recipe recipe, const std::string& encoding, int64_t step,
                          std::span<const Applied> journal) {
  if (step < 1) fail<InputError>("step {}: steps are counted from 1", step);
  recipe.data.cache_mb = 0;
  std::vector<std::string> notes;
  task::Opened opened = task::open_training(recipe, encoding, 0, nullptr, notes);
  data::Feed& feed = *opened.training.feed;
  task::Recipe last = opened.task.recipe;
  for (const Applied& entry : journal) apply_changes(last, {&entry.change, 1});
  if (const int64_t steps = TrainerState::steps_of(last, feed.batches_per_epoch()); step > steps)
    fail<InputError>("step {}: the training ends with step {} ({} an epoch)", step, steps,
                     feed.batches_per_epoch());
  // With the shares of the time: from one change of them to the next.
  task::Recipe& at = opened.task.recipe;
  int64_t done = 0;
  for (const Applied& entry : journal) {
    if (entry.step >= step || !entry.change.key.starts_with("data.weights.")) continue;
    feed.skip(entry.step - std::exchange(done, entry.step));
    apply_changes(at, {&entry.change, 1});
    if (at.data.weights.size() == at.data.sources.size()) feed.set_shares(task::shares_of(at, {}));
  }
  feed.skip(step - 1 - done);
  return opened;
}

}  // namespace millrace::train
