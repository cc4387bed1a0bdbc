#include "data/encode/table_state.h"

#include <cmath>
#include <limits>

#include "base/contains.h"
#include "base/format.h"
#include "base/words.h"
#include "data/formats/csv_scan.h"
#include "data/table/booleans.h"

namespace millrace::data {

void TableState::index() {
  ids.clear();
  number_ids.clear();
  for (const TableCategory& category : categories) {
    ids.emplace_back();
    number_ids.emplace_back();
    for (size_t i = 0; i < category.vocabulary.size(); ++i) {
      const std::string& text = category.vocabulary[i];
      ids.back().emplace(text, static_cast<int64_t>(i) + 1);
      if (const std::string number = code_text(text); !category.numbers && number != text)
        number_ids.back().emplace(number, static_cast<int64_t>(i) + 1);
    }
    add_booleans(ids.back());
  }
}

std::string code_text(std::string_view text) {
  int64_t integer = 0;
  double real = 0;
  if (csv_integer(text, integer)) return std::to_string(integer);
  return csv_real(text, real) ? fmt::format("{}", real) : std::string(text);
}

std::span<const std::string_view> missing_texts() {
  static constexpr std::string_view texts[] = {"NA",  "N/A", "n/a",  "#N/A", "NULL", "null", "None",
                                               "NaN", "nan", "<NA>", "-",    ".",    "?",    "missing"};
  return texts;
}

bool is_missing_text(std::string_view text) {
  constexpr size_t longest = 7;
  if (text.size() > longest) return false;
  return contains(missing_texts(), text);
}

int yes_or_no(std::string_view text) {
  constexpr std::string_view yes[] = {"yes", "true", "t", "y", "on"}, no[] = {"no", "false", "f", "n", "off"};
  constexpr size_t longest = 5;
  if (text.empty() || text.size() > longest) return -1;
  const std::string small = lower_case(std::string(text));
  if (contains(yes, small)) return 1;
  return contains(no, small) ? 0 : -1;
}

bool is_number(double value) { return std::abs(value) <= std::numeric_limits<float>::max(); }

}  // namespace millrace::data
