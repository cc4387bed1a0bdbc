// Recognising what a recipe leaves open: the kinds of inputs, outputs and the model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "task/input.h"
#include "task/recipe.h"

namespace millrace::task {

/// Gives every output a kind (by its `column`, `columns` or `of`, else by what the data set has) and settles
/// it. InputError names the columns and why no kind fits.
void settle_outputs(Recipe& recipe, const data::Dataset& samples);
/// The columns that outputs and weights name, and that samples are grouped by: no input takes these by
/// itself.
std::vector<std::string> taken_columns(const Recipe& recipe);
/// The column of data.test_by = "group:COLUMN"; "" where it is another.
std::string group_column(const Recipe& recipe);
/// The column that makes samples of several rows: data.group, or where an output is of groups the one that
/// usually says it; "" where a row is a sample. Kinds of outputs that are open are settled by the rows.
/// InputError where there is no such column.
std::string group_of(const Recipe& recipe, const data::Dataset& rows);
/// InputError where inputs and outputs do not agree on whether samples are several rows.
void check_groups(const Recipe& recipe);
/// The same for inputs. For each of them the columns that it is not to take by itself: `taken`, and those
/// that others name. InputError for one that names an output's target.
std::vector<std::vector<std::string>> settle_inputs(Recipe& recipe, const data::Dataset& samples,
                                                    const std::vector<std::string>& taken);
/// Only one input decides which samples share a batch (by the lengths of its rows: the one with the longest,
/// unless the recipe says which), and none of a stream: where the recipe leaves it open, the others pad
/// theirs to one length.
void settle_rows(Recipe& recipe, bool streamed);
/// The model, and the network of each of several inputs: where the recipe names none, what goes with the
/// inputs.
void settle_model(Recipe& recipe, std::span<const std::unique_ptr<Input>> inputs);

}  // namespace millrace::task
