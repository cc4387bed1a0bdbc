#include "data/encode/text_column.h"

#include <algorithm>
#include <set>

#include "base/contains.h"
#include "base/format.h"
#include "data/table/dates.h"
#include "data/table/labels.h"
#include "data/table/read_columns.h"

namespace millrace::data {
namespace {

constexpr int64_t kLooked = 1000;  // rows

ColumnValues first_values(const Dataset& dataset, size_t column) {
  return std::move(read_columns(dataset, 0, std::min(dataset.count(), kLooked), {&column, 1})[0]);
}

/// Several words, or some letters of a script that may not part them.
bool has_words(std::string_view text) {
  constexpr int64_t spaces = 2, bytes = 12;
  return std::count(text.begin(), text.end(), ' ') >= spaces ||
         std::count_if(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }) >= bytes;
}

bool numbers_rows(const Dataset& dataset, size_t column) {
  if (!names_rows(dataset.columns()[column].name) || dataset.columns()[column].kind != ColumnKind::integer)
    return false;
  const ColumnValues values = first_values(dataset, column);
  return std::set<int64_t>(values.integers.begin(), values.integers.end()).size() == values.size();
}

}  // namespace

std::string find_text_column(const Dataset& dataset, const std::vector<std::string>& taken) {
  std::vector<std::string> texts;
  for (const Column& column : dataset.columns())
    if (column.kind == ColumnKind::text && column.name != "__key__" && !contains(taken, column.name))
      texts.push_back(column.name);
  if (contains(texts, "text")) return "text";
  if (texts.size() > 1)
    std::erase_if(texts, [&](const std::string& name) { return !are_words(dataset, dataset.column(name)); });
  return texts.size() == 1 ? texts[0] : std::string();
}

bool are_words(const Dataset& dataset, size_t column) {
  const ColumnValues values = first_values(dataset, column);
  size_t there = 0, words = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values.has(i)) continue;
    ++there;
    words += has_words(values.contents[i]);
  }
  return 2 * words > there && texts_differ(dataset, column);
}

bool texts_differ(const Dataset& dataset, size_t column) {
  const ColumnValues values = first_values(dataset, column);
  std::set<std::string_view> different;
  size_t there = 0, dates = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values.has(i)) continue;
    ++there;
    different.insert(values.contents[i]);
    dates += is_date(values.contents[i]);
  }
  return 2 * different.size() >= there && 2 * dates <= there;
}

bool has_table_beside(const Dataset& dataset, const std::string& text,
                      const std::vector<std::string>& taken) {
  for (size_t c = 0; c < dataset.columns().size(); ++c) {
    const Column& column = dataset.columns()[c];
    if (column.name == text || column.name == "__key__" || contains(taken, column.name)) continue;
    if (is_numeric(column.kind) && !numbers_rows(dataset, c)) return true;
    if (column.kind == ColumnKind::text && !texts_differ(dataset, c)) return true;
  }
  return false;
}

std::string text_column(const Dataset& dataset, const std::string& wanted,
                        const std::vector<std::string>& taken, const std::string& key) {
  std::vector<std::string> texts;
  for (const Column& column : dataset.columns())
    if (column.kind == ColumnKind::text) texts.push_back(column.name);
  if (!wanted.empty()) {
    const ColumnKind kind = dataset.columns()[dataset.column(wanted)].kind;
    if (kind != ColumnKind::text)
      fail<InputError>("{}: the column '{}' holds no texts but {}s (texts: {})", dataset.path(), wanted,
                       kind_name(kind), texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", ")));
    return wanted;
  }
  std::string found = find_text_column(dataset, taken);
  if (found.empty())
    fail<InputError>("{}: {}", dataset.path(),
                     texts.empty() ? std::string("there is no column of texts")
                                   : fmt::format("which column holds the texts? Set {}.column to one of {}",
                                                 key, fmt::join(texts, ", ")));
  return found;
}

}  // namespace millrace::data
