// Everything that a training goes on from, as arrays.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/nn.h>

#include "check/context.h"
#include "optim/model_scope.h"
#include "train/checkpoint.h"

namespace millrace::check {

using States = std::vector<std::pair<std::string, Array>>;

/// Copies of parameters and buffers ("model.NAME") and of the optimiser's state ("optimizer.NAME"), after
/// step() was called.
States states_of(Context& context);
/// The name of the first that differs in a bit, or is missing; "" where there is none.
std::string first_difference(const States& one, const States& other);

/// They as a checkpoint, written to a temporary file and read back.
train::Checkpoint through_file(const States& states, int64_t step);

}  // namespace millrace::check
