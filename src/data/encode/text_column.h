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

/// Are a column's texts words that are to be read, by the first ones?
bool are_words(const Dataset& dataset, size_t column);
/// Do most of a column's texts differ, by the first ones, and are no dates? A table learns nothing of these.
bool texts_differ(const Dataset& dataset, size_t column);
/// Has a table something to learn from besides the column of texts `text` and those that are `taken`: by the
/// first rows, numbers that are not those of the rows, or texts that come again?
bool has_table_beside(const Dataset& dataset, const std::string& text, const std::vector<std::string>& taken);

}  // namespace millrace::data
