// Recipes of tables and sounds: their data and their models.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/feed/array_feed.h"
#include "data/table/dataset.h"
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

/// The feed of a training, about to give the batch of a step, counted from 1, and what its samples() are of.
struct ArraysAtStep {
  std::shared_ptr<const data::Dataset> samples;
  std::unique_ptr<data::Feed> feed;
};
ArraysAtStep arrays_at_step(const Recipe& recipe, int64_t step);

/// A source of rows or sounds that need no labels. A CSV file's first line is names where they are those that the model knows.
std::shared_ptr<const data::Dataset> open_rows(const Recipe& recipe, const std::string& encoding,
                                               const std::string& path);
/// All samples as the model takes them; a row's label is its sample's number.
std::shared_ptr<const data::ArrayData> unlabelled_arrays(const Recipe& recipe, const std::string& encoding,
                                                         std::shared_ptr<const data::Dataset> dataset);

/// What an exported model takes instead of its first input, so that what was learnt about the data is part of it: sounds as f32
/// [batch, samples] of data.rate, a table's columns of numbers as f64 [batch, columns] with NaN for what is missing.
std::optional<data::Field> raw_input(const Session& session);
/// From it the session's first input, by graph operators.
Value encode_raw(const Session& session, Graph& graph, Value raw);

/// Builds the recipe's model and draws its parameters.
Session make_array_session(Recipe recipe, const std::string& encoding);

}  // namespace millrace::train
