// What a TableEncoder knows, for those who learn it and use it.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
#include <xxhash.h>

#include "data/encode/table_layout.h"
#include "data/table/column_values.h"

namespace millrace::data {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return XXH3_64bits(text.data(), text.size()); }
};
/// Ids of texts.
using TextIds = std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>>;

struct TableState {
  std::vector<TableDense> dense;
  std::vector<TableCategory> categories;
  std::string label, trim;
  std::vector<std::string> classes;
  int64_t hash_ids = 0;
  // Made from the above.
  std::vector<TextIds> ids, ordinals;  // of each category; of each dense column
  TextIds class_ids;

  void index();
};

/// A number as a category is called: "7", "0.5".
std::string category_text(const ColumnValues& values, size_t i);
/// Whether it counts as one: finite, and no larger than a float can be.
bool is_number(double value);
/// Without these characters at both ends.
std::string_view trimmed_text(std::string_view text, std::string_view characters);
/// A label as a text, numbers as category_text writes them.
std::string_view label_text(const ColumnValues& values, size_t i, std::string_view trim, std::string& made);

}  // namespace millrace::data
