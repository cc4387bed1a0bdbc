// What a TableEncoder knows, for those who learn it and use it.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
#include <xxhash.h>

#include <millrace/dataset.h>

#include "data/encode/table_layout.h"

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
  int64_t hash_ids = 0;
  // Made from the above.
  std::vector<TextIds> ids, ordinals;  // of each category; of each dense column

  void index();
};

/// Whether it counts as one: finite, and no larger than a float can be.
bool is_number(double value);

}  // namespace millrace::data
