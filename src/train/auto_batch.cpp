#include "train/auto_batch.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/memory_nodes.h"
#include "train/trainer.h"

namespace millrace::train {
namespace {

constexpr double kNearly = 0.97;  // of the fastest
constexpr int64_t kFirst = 16, kLast = 1 << 14;
constexpr int64_t kLeastOfEpoch = 10;  // batches
constexpr double kMeasureEach = 0.5;   // seconds

double fastest_of(std::span<const TriedBatch> tried) {
  double most = 0;
  for (const TriedBatch& each : tried) most = std::max(most, each.per_second);
  return most;
}

/// Samples a second of the step alone, the best of some: what the loader takes is the same for all.
double speed_of(Trainer& trainer, int64_t batch) {
  constexpr int64_t warm_up = 2, least = 3;
  double shortest = 0, spent = 0;
  int64_t done = 0;
  trainer.rehearse([&](const StepMarks& m) {
    const double seconds = static_cast<double>(m.ran - m.inputs) * 1e-9;
    if (++done <= warm_up) return true;
    shortest = done == warm_up + 1 ? seconds : std::min(shortest, seconds);
    spent += seconds;
    return done < warm_up + least || spent < kMeasureEach;
  });
  return static_cast<double>(batch) / std::max(shortest, 1e-9);
}

}  // namespace

int64_t best_batch(std::span<const TriedBatch> tried) {
  const double enough = kNearly * fastest_of(tried);
  for (const TriedBatch& each : tried)
    if (each.per_second >= enough) return each.batch;
  return tried.back().batch;
}

bool no_faster(std::span<const TriedBatch> tried) {
  if (tried.size() < 3) return false;
  return fastest_of(tried.last(2)) * kNearly < fastest_of(tried.first(tried.size() - 2));
}

int64_t fastest_batch(const task::Recipe& recipe, const Observer& observer) {
  std::vector<TriedBatch> tried;
  std::string end;
  Observer quiet;
  quiet.busy = observer.busy;
  for (int64_t batch = kFirst; batch <= kLast && !no_faster(tried); batch *= 2) {
    task::Recipe with = recipe;
    with.train.batch = batch;
    try {
      Trainer trainer(with, quiet, 4 * batch);
      const int64_t arena = trainer.program().arena_bytes();
      const bool few = trainer.preparation().samples < kLeastOfEpoch * batch;
      if (!tried.empty() && (few || !memory_warning(arena).empty())) {
        end = few ? fmt::format("; an epoch has few batches of {}", batch)
                  : fmt::format("; batches of {} do not fit into memory", batch);
        break;
      }
      tried.push_back({batch, speed_of(trainer, batch)});
    } catch (const InputError&) {
      if (tried.empty()) throw;
      end = fmt::format("; batches of {} do not fit", batch);
      break;
    }
    if (observer.stop()) break;
  }
  const int64_t best = best_batch(tried);
  std::string line;
  for (const TriedBatch& each : tried)
    line += fmt::format("{}{}: {:.0f}/s", line.empty() ? "" : ", ", each.batch, each.per_second);
  observer.message(
      fmt::format("train.batch = {}, the smallest that is nearly as fast as any ({}{})", best, line, end));
  return best;
}

}  // namespace millrace::train
