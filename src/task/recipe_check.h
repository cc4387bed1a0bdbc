// Parts of check_recipe(). All throw InputError.
#pragma once

#include <string>

#include "task/recipe.h"

namespace millrace::task {

/// data.train, its weights, streams, and what is kept to test on.
void check_sources(const Recipe& recipe);

/// Kinds, what they are told, and the metrics of their outputs: as far as they are known. `name` stands for
/// the recipe in messages.
void check_kinds(const Recipe& recipe, const std::string& name);

}  // namespace millrace::task
