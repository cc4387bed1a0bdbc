// Baselines that learn: small trainings by the recipe's data, with another model.
#pragma once

#include <string>

#include "baseline/context.h"

namespace millrace::baseline {

/// The recipe with nothing of its training but the seed, and no model yet: one that learns by lbfgs, or is
/// fitted.
task::Recipe plain_recipe(const Context& context);
/// Sets the model of that kind, as it usually is.
void choose_model(task::Recipe& recipe, const std::string& kind);
/// Trains it in a folder of its own, which is gone afterwards.
Result trained(Context& context, const task::Recipe& recipe, const std::string& name);

}  // namespace millrace::baseline
