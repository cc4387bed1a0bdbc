// Recipes of tables and sounds: their data and their models.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/array_feed.h"
#include "data/dataset.h"
#include "train/datasets.h"
#include "train/session.h"

namespace millrace::train {

/// True for data.samples = "table" and "sounds".
bool has_arrays(const Recipe& recipe);

/// What keys of tables and sounds cannot mean together, or without data.samples; InputError.
void check_arrays(const Recipe& recipe, const std::string& name);

/// data.train, without what data.test_where keeps to test on, in the recipe's order. `encoding` gets what was learnt about it:
/// vocabularies, means, classes.
std::unique_ptr<data::Feed> training_arrays(const Recipe& recipe, std::string& encoding,
                                            const ReadProgress& progress);
/// To test on, in order: `path`, or where that is empty the recipe's data.test or its share of data.train.
std::unique_ptr<data::Feed> test_arrays(const Recipe& recipe, const std::string& encoding,
                                        const std::string& path, const ReadProgress& progress);

/// A source of rows or sounds that need no labels. A CSV file's first line is names where they are those that the model knows.
std::shared_ptr<const data::Dataset> open_rows(const Recipe& recipe, const std::string& encoding,
                                               const std::string& path);
/// All samples as the model takes them; a row's label is its sample's number.
std::shared_ptr<const data::ArrayData> unlabelled_arrays(const Recipe& recipe, const std::string& encoding,
                                                         std::shared_ptr<const data::Dataset> dataset);

/// Builds the recipe's model and draws its parameters.
Session make_array_session(Recipe recipe, const std::string& encoding);

}  // namespace millrace::train
