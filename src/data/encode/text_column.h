// Which column of a data set holds its texts.
#pragma once

#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// "text", or the only column of texts that is not among `taken`, or of several the only one of words that
/// are to be read, as names, ids and links are not. Empty: there is none, or they are several.
std::string find_text_column(const Dataset& dataset, const std::vector<std::string>& taken = {});
/// `wanted`, or where that is empty the one that is found. InputError when there is none, or it holds no
/// texts; `key`: of the recipe's section, for messages.
std::string text_column(const Dataset& dataset, const std::string& wanted,
                        const std::vector<std::string>& taken = {}, const std::string& key = "input");

/// What the first rows have in a column of texts.
struct TextsSeen {
  size_t there = 0, again = 0, words = 0, dates = 0;  // again: those that come often enough for a category
  /// Most differ, and are no dates: a table learns nothing of them.
  bool differ() const { return there > 0 && 2 * again < there && 2 * dates <= there; }
  bool are_words() const { return differ() && 2 * words > there; }
};
TextsSeen texts_seen(const Dataset& dataset, size_t column);

/// The column of texts that a sample is, where a table would have nothing to learn from, by the first rows:
/// "text", or beside nothing but ids and what is `taken` the only one of words, or alone the only one whose
/// texts differ. Empty: there is none, or they are several.
std::string find_text_to_read(const Dataset& dataset, const std::vector<std::string>& taken);

}  // namespace millrace::data
