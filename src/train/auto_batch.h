// train.batch = "auto".
#pragma once

#include <cstdint>
#include <span>

#include <millrace/training.h>

#include "task/recipe.h"

namespace millrace::train {

/// A batch that was tried.
struct TriedBatch {
  int64_t batch = 0;
  double per_second = 0;  // samples
};

/// The smallest that is nearly as fast as the fastest: what more gives is noise, and small batches learn more
/// from a sample.
int64_t best_batch(std::span<const TriedBatch> tried);
/// Is it no use to try larger ones?
bool no_faster(std::span<const TriedBatch> tried);

/// Times steps of the recipe with batches of 16, 32 … on a sample of its data, while they fit the memory and
/// train.memory, an epoch has ten of them, and they are faster. Tells the observer what it found. InputError
/// where not even the smallest can be.
int64_t fastest_batch(const task::Recipe& recipe, const Observer& observer);

}  // namespace millrace::train
