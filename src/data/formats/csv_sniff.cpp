#include "data/formats/csv_sniff.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/format.h"
#include "base/words.h"
#include "data/formats/csv_cells.h"

namespace millrace::data {
namespace {

using Rows = std::vector<std::vector<CsvField>>;

constexpr size_t most_sniffed_rows = 1000, most_sniffed_columns = 1'000'000;

/// The first whole rows; empty ones are left out. `first_end`: where the first ends.
Rows first_rows(std::string_view head, bool whole, CsvDialect dialect, size_t* first_end = nullptr) {
  Rows rows;
  std::vector<CsvField> fields;
  size_t widest = 0;
  scan_csv(
      head.data(), head.data() + head.size(), dialect,
      [&](const CsvField& field) { fields.push_back(field); },
      [&](const char* next) {
        const auto at = static_cast<size_t>(next - head.data());
        const bool complete = whole || head[at - 1] == dialect.newline;
        if (complete && (fields.size() > 1 || (!fields.empty() && fields[0].size > 0))) {
          widest = std::max(widest, fields.size());
          if (rows.empty() && first_end) *first_end = at;
          rows.push_back(std::move(fields));
        }
        fields.clear();
        return rows.size() < most_sniffed_rows && widest * rows.size() < most_sniffed_columns;
      });
  return rows;
}

/// The share of rows that have as many fields as the first, and that many.
std::pair<double, size_t> evenness(const Rows& rows) {
  if (rows.empty()) return {0, 0};
  size_t same = 0;
  for (const auto& row : rows) same += row.size() == rows[0].size();
  return {static_cast<double>(same) / static_cast<double>(rows.size()), rows[0].size()};
}

/// In tab-separated texts quotes are often only letters. They are where one that opens a value is closed in
/// the middle of it.
bool quotes_quote(const Rows& rows) {
  for (const auto& row : rows)
    for (const CsvField& field : row) {
      if (!field.quoted) continue;
      size_t i = 1;
      while (i < field.size && (field.data[i] != '"' || (i + 1 < field.size && field.data[i + 1] == '"')))
        i += field.data[i] == '"' ? 2 : 1;
      if (i + 1 != field.size) return false;
    }
  return true;
}

/// Are these cells of a column, from row `first` on, numbers?
bool holds_numbers(const Rows& rows, size_t first, size_t column, std::span<const std::string> missing) {
  CsvTally tally;
  for (size_t r = first; r < rows.size(); ++r)
    if (column < rows[r].size()) tally.add(rows[r][column], 0, missing);
  return csv_column(tally, false).of_digits();
}

bool is_number(const CsvField& field) {
  CsvTally tally;
  tally.add(field, 0, {});
  return tally.numbers() > 0;
}

/// Words that differ, none of them a number or missing.
bool different_words(const std::vector<CsvField>& row) {
  std::set<std::string> names;
  for (const CsvField& field : row) {
    const std::string name = csv_text(field);
    const bool word = std::isalpha(static_cast<unsigned char>(name.empty() ? ' ' : name[0])) != 0;
    if (!word || name.size() > 64 || csv_missing_number(name) || !names.insert(name).second) return false;
  }
  return true;
}

/// Tables of numbers are also written with blanks between: equally many in each row, below numbers or names.
bool blanks_delimit(std::string_view head, bool whole, char newline) {
  const Rows rows = first_rows(head, whole, {' ', true, newline});
  const auto [share, fields] = evenness(rows);
  if (fields < 2 || share < 1) return false;
  const bool names = different_words(rows[0]);
  const auto numbers = [&](const Rows& of, size_t column) {
    CsvTally tally;
    for (size_t r = names && of.size() > 1 ? 1 : 0; r < of.size(); ++r) tally.add(of[r][column], 0, {});
    return tally.other == 0 && csv_column(tally, false).of_digits();
  };
  for (size_t c = 0; c < fields; ++c)
    if (!numbers(rows, c)) return false;
  // "1 234" in one column is one number.
  return !numbers(first_rows(head, whole, {',', true, newline}), 0);
}

/// Rare ones first: a tab that stands equally often in every row is there to delimit, a comma may be in texts
/// or numbers.
char delimiter_of(std::string_view head, bool whole, char newline) {
  char best = ',';
  double best_share = 0;
  for (const char delimiter : {'\t', ';', '|', ','}) {
    const auto [share, fields] = evenness(first_rows(head, whole, {delimiter, true, newline}));
    if (fields < 2 || share <= best_share) continue;
    best = delimiter;
    best_share = share;
  }
  return best_share == 0 && blanks_delimit(head, whole, newline) ? ' ' : best;
}

/// A year, as columns are called: 1990.
std::optional<int64_t> year_of(const CsvField& field) {
  constexpr int64_t first = 1800, last = 2100;
  int64_t year = 0;
  return csv_integer(csv_text(field), year) && year >= first && year <= last ? std::optional(year)
                                                                             : std::nullopt;
}

/// Are all numbers in quotes, in the first row, above numbers without?
bool quoted_above_bare(const Rows& rows, size_t column) {
  const auto bare = [&](const auto& row) { return column >= row.size() || !row[column].quoted; };
  return rows[0][column].quoted && std::all_of(rows.begin() + 1, rows.end(), bare) &&
         holds_numbers(rows, 1, column, {});
}

/// Names of which some are numbers: in quotes above numbers without, or two years and more, growing, above
/// what are no years, beside words that differ and do not come again.
bool numbers_as_names(const Rows& rows) {
  std::set<std::string> words;
  bool all_quoted = true;
  int64_t years = 0, latest = 0;
  for (size_t c = 0; c < rows[0].size(); ++c) {
    const CsvField& field = rows[0][c];
    if (is_number(field)) {
      all_quoted = all_quoted && quoted_above_bare(rows, c);
      const auto year = year_of(field);
      const bool grows = year && *year > latest;
      bool others = false;
      for (size_t r = 1; r < rows.size(); ++r)
        others = others || (c < rows[r].size() && !csv_missing(rows[r][c]) && !year_of(rows[r][c]));
      latest = grows && others ? *year : INT64_MAX;
      ++years;
      continue;
    }
    const bool unnamed = csv_text(field).empty() && (c == 0 || c + 1 == rows[0].size());
    if (unnamed) continue;
    if (!different_words({field}) || !words.insert(csv_text(field)).second) return false;
    for (size_t r = 1; r < rows.size(); ++r)
      if (c < rows[r].size() && csv_text(rows[r][c]) == csv_text(field)) return false;
  }
  return years > 0 && (all_quoted || (years > 1 && latest != INT64_MAX && !words.empty()));
}

/// What people call columns whose cells are texts that all differ.
bool is_usual_name(const std::string& name) {
  static const std::set<std::string_view> usual = {
      "id",       "key",      "name",    "text",     "label",   "class",   "category", "target",
      "title",    "question", "answer",  "sentence", "message", "comment", "review",   "body",
      "content",  "subject",  "date",    "time",     "url",     "path",    "file",     "image",
      "filename", "document", "summary", "source",   "context", "prompt",  "response", "sentiment"};
  return usual.contains(lower_case(name));
}

/// Words of which none stands in its column again, over columns of which one has few values, or is called as
/// people call columns.
bool stands_apart(const Rows& rows) {
  constexpr size_t least_rows = 5;
  const auto& first = rows[0];
  std::set<std::string> names;
  bool few = false, blanks = false;
  size_t usual = 0;
  for (size_t c = 0; c < first.size(); ++c) {
    const std::string name = csv_text(first[c]);
    const auto is_of_name = [](char x) {
      return std::isalnum(static_cast<unsigned char>(x)) || x == '_' || x == ' ';
    };
    if (name.empty() || name.size() > 32 || !std::isalpha(static_cast<unsigned char>(name[0])) ||
        !std::all_of(name.begin(), name.end(), is_of_name) || !names.insert(name).second)
      return false;
    std::set<std::string> different;
    for (size_t r = 1; r < rows.size(); ++r)
      if (c < rows[r].size()) different.insert(csv_text(rows[r][c]));
    if (different.contains(name)) return false;
    few |= rows.size() > least_rows && 2 * different.size() < rows.size();
    usual += is_usual_name(name) && std::none_of(different.begin(), different.end(), is_usual_name) ? 1 : 0;
    blanks = std::all_of(different.begin(), different.end(),
                         [](const std::string& text) { return text.find(' ') != std::string::npos; });
  }
  // One alone is thin evidence, but over texts of several words.
  return few || usual > 1 || (usual == 1 && names.size() == 1 && blanks);
}

/// Could the first row be names: texts over numbers, or texts that differ over texts that come again and
/// again without them?
bool looks_like_header(const Rows& rows, std::span<const std::string> missing) {
  const auto& first = rows[0];
  if (rows.size() < 2) return false;
  // Even where some names are numbers, such as years.
  for (size_t c = 0; c < first.size(); ++c)
    if (different_words({first[c]}) && holds_numbers(rows, 1, c, missing)) return true;
  if (numbers_as_names(rows) || stands_apart(rows)) return true;
  std::set<std::string> names;
  for (size_t c = 0; c < first.size(); ++c) {
    // Columns without a name are called nothing: that of row numbers that pandas writes, what stands behind a
    // delimiter at the end of each line.
    const bool unnamed = first[c].size == 0 && (c == 0 || c + 1 == first.size());
    if (!unnamed && (is_number(first[c]) || csv_missing(first[c]))) return false;
    names.insert(csv_text(first[c]));
  }
  const bool differ = names.size() == first.size();
  for (size_t c = 0; c < first.size(); ++c) {
    std::set<std::string> different;
    for (size_t r = 1; r < rows.size(); ++r)
      if (c < rows[r].size()) different.insert(csv_text(rows[r][c]));
    if (holds_numbers(rows, 1, c, missing)) return true;
    const std::string name = csv_text(first[c]);
    const bool word = !name.empty() && name.size() <= 64 && std::isalpha(static_cast<unsigned char>(name[0]));
    if (differ && word && rows.size() > 20 && different.size() * 10 < rows.size() &&
        !different.contains(name))
      return true;
  }
  return false;
}

/// A first line that begins with # and is no row: with another number of values than the rows behind it.
bool is_comment(std::string_view head, bool whole, char newline) {
  const size_t line = head.find(newline);
  if (!head.starts_with('#') || line == std::string_view::npos || line + 1 == head.size()) return false;
  const std::string_view rest = head.substr(line + 1);
  const CsvDialect dialect{delimiter_of(rest, whole, newline), true, newline};
  const Rows first = first_rows(head.substr(0, line), true, dialect),
             behind = first_rows(rest, whole, dialect);
  return !first.empty() && !behind.empty() && first[0].size() != behind[0].size();
}

}  // namespace

CsvShape csv_shape(const std::string& path, std::string_view head, bool whole, std::optional<bool> header,
                   std::span<const std::string> missing, TabQuotes quotes) {
  CsvShape shape;
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"))
    fail<InputError>("{}: is UTF-16; convert it to UTF-8 first (iconv -f utf-16 -t utf-8)", path);
  if (head.starts_with("\xef\xbb\xbf")) {
    head.remove_prefix(3);
    shape.begin = 3;
  }
  if (head.find('\n') == std::string_view::npos && head.find('\r') != std::string_view::npos)
    shape.dialect.newline = '\r';
  const bool said = head.size() > 5 && head.starts_with("sep=") && (head[5] == '\r' || head[5] == '\n');
  const char delimiter = said ? head[4] : '\0';
  if (said) {  // Excel's own line
    const size_t line = head.find(shape.dialect.newline) + 1;
    shape.begin += line;
    head.remove_prefix(line);
  }
  while (!said && is_comment(head, whole, shape.dialect.newline)) {
    const size_t line = head.find(shape.dialect.newline) + 1;
    shape.begin += line;
    head.remove_prefix(line);
  }
  shape.dialect.delimiter = said ? delimiter : delimiter_of(head, whole, shape.dialect.newline);
  size_t first_end = 0;
  Rows rows = first_rows(head, whole, shape.dialect, &first_end);
  const bool letters = quotes == TabQuotes::letters || (quotes == TabQuotes::found && !quotes_quote(rows));
  if (shape.dialect.delimiter == '\t' && letters) {
    shape.dialect.quotes = false;
    rows = first_rows(head, whole, shape.dialect, &first_end);
  }
  if (rows.empty() && !whole) return shape;
  if (rows.empty())
    fail<InputError>("{}: there is no whole row in it: it is empty, or a quote is never closed", path);
  shape.header = header.value_or(looks_like_header(rows, missing));
  std::vector<CsvField> words = rows[0];
  if (words.size() > 1 && words[0].size <= 2 && csv_text(words[0]).empty()) words.erase(words.begin());
  shape.only_words = rows.size() == 1 && rows[0].size() > 1 && different_words(words);
  std::set<std::string> taken;
  for (size_t c = 0; c < rows[0].size(); ++c) {
    std::string name = shape.header ? csv_text(rows[0][c]) : std::string();
    if (name.empty()) name = fmt::format("c{}", c);
    const std::string base = name;
    for (int k = 2; !taken.insert(name).second; ++k) name = fmt::format("{}_{}", base, k);
    if (name != base) shape.renamed.push_back(name);
    shape.columns.push_back(name);
  }
  if (shape.header) shape.begin += first_end;
  return shape;
}

}  // namespace millrace::data
