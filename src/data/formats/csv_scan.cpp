#include "data/formats/csv_scan.h"

#include <algorithm>
#include <optional>

#include "base/number_from.h"

namespace millrace::data {
namespace {

template <typename T>
bool parse(std::string_view text, T& number) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  const std::optional<T> value = number_from<T>(text);
  if (value) number = *value;
  return value.has_value();
}

}  // namespace

bool swallows_rows(const CsvField& field, CsvDialect dialect, size_t width) {
  if (!field.quoted || width < 2) return false;
  const std::string_view text = field.text();
  const auto lines = std::count(text.begin(), text.end(), dialect.newline);
  std::ptrdiff_t empty = 0;
  for (size_t at = text.find(dialect.newline); at < text.size(); at = text.find(dialect.newline, at + 1)) {
    const bool begins = at + 1 == text.size() || csv_detail::blank(text[at + 1]);
    empty += begins || text[at - 1] == dialect.delimiter ? 1 : 0;
  }
  return 2 * empty < lines && std::count(text.begin(), text.end(), dialect.delimiter) ==
                                  lines * static_cast<std::ptrdiff_t>(width - 1);
}

std::string csv_text(const CsvField& field) {
  if (!field.quoted) return std::string(field.text());
  std::string text;
  size_t i = 1;
  for (; i < field.size; ++i) {
    if (field.data[i] == '"') {
      if (i + 1 >= field.size || field.data[i + 1] != '"') break;
      ++i;
    }
    text += field.data[i];
  }
  if (i + 1 < field.size) text.append(field.data + i + 1, field.size - i - 1);
  return text;
}

bool csv_integer(std::string_view text, int64_t& number) { return parse(text, number); }
bool csv_real(std::string_view text, double& number) {
  if (parse(text, number)) return true;
  // A number that is there but too large or too small for a double is still a number.
  if (text.empty() || text.size() > 400) return false;
  const bool digits = text.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
  if (!digits) return false;
  const std::string copy(text);
  char* end = nullptr;
  number = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size();
}

}  // namespace millrace::data
