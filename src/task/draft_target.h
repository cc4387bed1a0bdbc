// What a draft of a recipe predicts.
#pragma once

#include <string>

#include <millrace/dataset.h>
#include <millrace/recipe.h>

namespace millrace::task {

/// Settles the first output: a column that is called as targets are, of a table else the last that says
/// something, or a part of the samples' names. Returns why, for a comment; "" where it is plain. InputError
/// when there is nothing to predict.
std::string recognise_target(Recipe& recipe, const data::Dataset& samples);

}  // namespace millrace::task
