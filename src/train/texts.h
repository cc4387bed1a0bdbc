// Recipes of texts: their data and their models.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/codecs/text/tokenizer.h"
#include "data/feed/feed.h"
#include "data/table/dataset.h"
#include "train/datasets.h"
#include "train/session.h"

namespace millrace::train {

/// What keys of texts (data.tokenizer …) cannot mean together, or without data.tokenizer; InputError.
void check_texts(const Recipe& recipe, const std::string& name);

/// Rows of data.train without what is kept to test on, in the recipe's order. InputError names what is wrong.
std::unique_ptr<data::Feed> training_texts(const Recipe& recipe, const ReadProgress& progress);
/// Rows to test on, in order: of `path`, or where that is empty of the recipe's data.test or its share of data.train.
/// `classes`: the model's.
std::unique_ptr<data::Feed> test_texts(const Recipe& recipe, const std::vector<std::string>& classes,
                                       const std::string& path, const ReadProgress& progress);

/// The feed of a training, about to give the batch of a step, counted from 1.
std::unique_ptr<data::Feed> texts_at_step(const Recipe& recipe, int64_t step);

/// A source of texts that need no labels, in the recipe's column where it has columns.
std::shared_ptr<const data::Dataset> open_texts(const Recipe& recipe, const std::string& path);
/// All texts (of the recipe's column, or in plain text files the one that they have) as a model of classes takes them in
/// evaluation; the targets are their numbers in the data set.
std::unique_ptr<data::Feed> unlabelled_texts(const Recipe& recipe, const data::Dataset& dataset);

/// The tokenizer of data.tokenizer.
std::shared_ptr<const data::Tokenizer> tokenizer_of(const Recipe& recipe);
/// The last tokens of a text that fit into a row, as a model that predicts the next one takes them.
struct PreparedTail {
  std::vector<Array> inputs;  // of one row
  int64_t tokens = 0;
};
PreparedTail prepared_tail(const Session& session, std::span<const int32_t> ids);

/// A text as the session's model takes it: its inputs of one row, as for evaluation.
std::vector<Array> prepared_text(const Session& session, const std::string& text);

/// Builds the recipe's model and draws its parameters. `classes`: empty where it predicts tokens.
Session make_text_session(Recipe recipe, std::vector<std::string> classes);

}  // namespace millrace::train
