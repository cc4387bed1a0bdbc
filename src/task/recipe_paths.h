// Paths of recipes, compared.
#pragma once

#include "task/recipe.h"

namespace millrace::task {

/// A recipe with paths as text, of which `other` is a change: does that change nothing, as its paths, from
/// here, name the same files? What both write alike is from the base of `other`.
bool same_but_for_paths(const Recipe& changed, const Recipe& other);

}  // namespace millrace::task
