// What a training read in one of its steps.
#pragma once

#include <cstdint>
#include <span>

#include "task/feeds.h"
#include "train/control.h"

namespace millrace::train {

/// The task and the feed of a training, about to give the batch of a step (from 1 on) as it was with the
/// changes of the journal. Nothing is kept in memory for later batches. `encoding`: what the run learnt from
/// the data; empty: it is learnt again. InputError for a step that the training does not have.
task::Opened open_at_step(task::Recipe recipe, const std::string& encoding, int64_t step,
                          std::span<const Applied> journal);

}  // namespace millrace::train
