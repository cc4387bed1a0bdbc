#include "data/encode/table_state.h"

#include <cmath>
#include <limits>

#include "base/format.h"

namespace millrace::data {

void TableState::index() {
  ids.clear();
  ordinals.clear();
  class_ids.clear();
  for (const TableCategory& category : categories) {
    ids.emplace_back();
    for (size_t i = 0; i < category.vocabulary.size(); ++i)
      ids.back().emplace(category.vocabulary[i], static_cast<int64_t>(i) + 1);
  }
  for (const TableDense& column : dense) {
    ordinals.emplace_back();
    for (size_t i = 0; i < column.ordinal.size(); ++i)
      ordinals.back().emplace(column.ordinal[i], static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < classes.size(); ++i) class_ids.emplace(classes[i], static_cast<int64_t>(i));
}

std::string category_text(const ColumnValues& values, size_t i) {
  return values.kind == ColumnKind::integer ? std::to_string(values.integers[i])
                                            : fmt::format("{}", values.reals[i]);
}

bool is_number(double value) { return std::abs(value) <= std::numeric_limits<float>::max(); }

std::string_view trimmed_text(std::string_view text, std::string_view characters) {
  if (characters.empty()) return text;
  const size_t begin = text.find_first_not_of(characters);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(characters) + 1 - begin);
}

std::string_view label_text(const ColumnValues& values, size_t i, std::string_view trim, std::string& made) {
  if (values.kind == ColumnKind::text) return trimmed_text(values.contents[i], trim);
  made = category_text(values, i);
  return made;
}

}  // namespace millrace::data
