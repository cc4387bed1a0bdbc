#include "data/table/booleans.h"

#include <algorithm>

#include "base/words.h"

namespace millrace::data {

int boolean_of(std::string_view text) {
  constexpr size_t longest = 5;
  if (text.size() > longest) return -1;
  const std::string small = lower_case(std::string(text));
  return small == "true" ? 1 : small == "false" ? 0 : -1;
}

bool holds_booleans(const Dataset& dataset, size_t column) {
  constexpr int64_t looked_at = 1000;
  if (dataset.columns().at(column).kind != ColumnKind::text) return false;
  for (int64_t i = 0; i < std::min(dataset.count(), looked_at); ++i)
    if (const Value value = dataset.read(i, column); const auto* text = std::get_if<std::string>(&value))
      return boolean_of(*text) >= 0;
  return false;
}

void add_booleans(TextMap<int64_t>& ids) {
  constexpr const char* ways[2][3] = {{"false", "False", "FALSE"}, {"true", "True", "TRUE"}};
  for (const auto& value : ways)
    for (const char* known : value)
      if (const auto at = ids.find(known); at != ids.end()) {
        const int64_t id = at->second;
        for (const char* other : value) ids.try_emplace(other, id);
        break;
      }
}

}  // namespace millrace::data
