// What to say to whom has not enough memory for a step.
#pragma once

#include <string>

#include <millrace/recipe.h>

namespace millrace::task {

/// Values of keys with which a step fits into `memory`: "train.batch = 24, train.accumulate = 4 (with the
/// batch as it is) or train.precision = \"bf16\"". `fixed`: the bytes of the step that stay whatever the
/// batch; `of_rows`: those of the batch's rows, of one of its parts where it is worked off in parts. Empty
/// where nothing helps.
std::string would_fit(const Recipe::Train& train, double fixed, double of_rows, double memory);

}  // namespace millrace::task
