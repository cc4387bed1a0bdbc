// Recipes of texts: their data and their models.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/feed.h"
#include "data/text/tokenizer.h"
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

/// Builds the recipe's model and draws its parameters. `classes`: empty where it predicts tokens.
Session make_text_session(Recipe recipe, std::vector<std::string> classes);

}  // namespace millrace::train
