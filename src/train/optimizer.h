// The recipe's optimiser and learning-rate schedule.
#pragma once

#include <memory>

#include <millrace/optim.h>

#include "train/recipe.h"

namespace millrace::train {

/// `model` tells which biases belong to batch norms.
std::shared_ptr<const optim::Optimizer> make_optimizer(const Recipe& recipe, nn::Module& model);
optim::Schedule make_schedule(const Recipe& recipe, int64_t steps_per_epoch, int64_t total_steps);

}  // namespace millrace::train
