#include "data/encode/text_column.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/contains.h"
#include "base/format.h"
#include "data/table/dates.h"
#include "data/table/labels.h"
#include "data/table/read_columns.h"

namespace millrace::data {
namespace {

constexpr int64_t kLooked = 20'000;  // rows

ColumnValues first_values(const Dataset& dataset, size_t column) {
  return std::move(read_columns(dataset, 0, std::min(dataset.count(), kLooked), {&column, 1})[0]);
}

/// Several words, or some letters of a script that may not part them.
bool has_words(std::string_view text) {
  constexpr int64_t spaces = 2, bytes = 12;
  return std::count(text.begin(), text.end(), ' ') >= spaces ||
         std::count_if(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }) >= bytes;
}

/// Numbers of rows, or such as a database gives, not a rank or an index of something: by their name, each
/// once, and growing, as many as there are rows, or large.
bool numbers_rows(const Dataset& dataset, size_t column) {
  constexpr int64_t large = 100'000;
  if (!names_rows(dataset.columns()[column].name) || dataset.columns()[column].kind != ColumnKind::integer)
    return false;
  const std::vector<int64_t> numbers = first_values(dataset, column).integers;
  const std::set<int64_t> different(numbers.begin(), numbers.end());
  if (different.size() != numbers.size() || different.empty() || *different.begin() < 0) return false;
  return std::is_sorted(numbers.begin(), numbers.end()) || *different.rbegin() < 2 * dataset.count() ||
         *different.begin() >= large;
}

}  // namespace

TextsSeen texts_seen(const Dataset& dataset, size_t column) {
  const ColumnValues values = first_values(dataset, column);
  TextsSeen seen;
  std::unordered_map<std::string_view, size_t> times;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values.has(i)) continue;
    ++seen.there;
    ++times[values.contents[i]];
    seen.words += has_words(values.contents[i]);
    seen.dates += is_date(values.contents[i]);
  }
  // As many as make a category (table_decide.cpp).
  const size_t often = values.size() < 100 ? 2 : 3;
  for (const auto& [text, count] : times)
    if (count >= often) seen.again += count;
  return seen;
}

std::string find_text_column(const Dataset& dataset, const std::vector<std::string>& taken) {
  std::vector<std::string> texts;
  for (const Column& column : dataset.columns())
    if (column.kind == ColumnKind::text && column.name != "__key__" && !contains(taken, column.name))
      texts.push_back(column.name);
  if (contains(texts, "text")) return "text";
  if (texts.size() > 1)
    std::erase_if(texts, [&](const std::string& name) {
      return !texts_seen(dataset, dataset.column(name)).are_words();
    });
  return texts.size() == 1 ? texts[0] : std::string();
}

std::string find_text_to_read(const Dataset& dataset, const std::vector<std::string>& taken) {
  std::vector<std::string> texts;
  bool numbers = false, ids = false;
  for (size_t c = 0; c < dataset.columns().size(); ++c) {
    const Column& column = dataset.columns()[c];
    if (column.name == "__key__" || contains(taken, column.name)) continue;
    if (column.kind == ColumnKind::text) texts.push_back(column.name);
    if (is_numeric(column.kind)) (numbers_rows(dataset, c) ? ids : numbers) = true;
  }
  if (contains(texts, "text")) return "text";
  if (numbers) return {};
  std::vector<std::string> found;
  for (const std::string& name : texts) {
    const TextsSeen seen = texts_seen(dataset, dataset.column(name));
    if (!seen.differ()) return {};
    const bool alone = texts.size() == 1 && !ids;
    if (alone || seen.are_words()) found.push_back(name);
  }
  return found.size() == 1 ? found[0] : std::string();
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
