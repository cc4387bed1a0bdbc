#include "data/formats/csv_sniff.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/format.h"

namespace millrace::data {
namespace {

using Rows = std::vector<std::vector<CsvField>>;

constexpr size_t most_sniffed_rows = 1000, most_sniffed_columns = 1'000'000;

/// The first whole rows; empty ones are left out. `ends`: where each ends.
Rows first_rows(std::string_view head, bool whole, CsvDialect dialect, std::vector<size_t>& ends) {
  Rows rows;
  std::vector<CsvField> fields;
  size_t widest = 0;
  scan_csv(
      head.data(), head.data() + head.size(), dialect,
      [&](const CsvField& field) { fields.push_back(field); },
      [&](const char* next) {
        const auto at = static_cast<size_t>(next - head.data());
        const bool complete = whole || head[at - 1] == '\n';
        if (complete && (fields.size() > 1 || fields[0].size > 0)) {
          widest = std::max(widest, fields.size());
          rows.push_back(std::move(fields));
          ends.push_back(at);
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

/// Rare ones first: a tab that stands equally often in every row is there to delimit, a comma may be in texts
/// or numbers.
char delimiter_of(std::string_view head, bool whole) {
  char best = ',';
  double best_share = 0;
  for (const char delimiter : {'\t', ';', '|', ','}) {
    std::vector<size_t> ends;
    const auto [share, fields] = evenness(first_rows(head, whole, {delimiter, true}, ends));
    if (fields < 2 || share <= best_share) continue;
    best = delimiter;
    best_share = share;
  }
  return best;
}

std::string content(const CsvField& field) {
  return field.quoted ? csv_unquoted(field) : std::string(field.text());
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

/// Could the first row be names: texts over numbers, or texts that differ over texts that come again and
/// again without them?
bool looks_like_header(const Rows& rows) {
  const auto& first = rows[0];
  if (rows.size() < 2) return false;
  std::set<std::string> names;
  for (size_t c = 0; c < first.size(); ++c) {
    const bool text = csv_widened(CsvType::none, first[c]) == CsvType::text;
    // The column of row numbers that pandas writes has no name.
    if (!text && !(c == 0 && first[c].size == 0)) return false;
    names.insert(content(first[c]));
  }
  const bool differ = names.size() == first.size();
  for (size_t c = 0; c < first.size(); ++c) {
    CsvType type = CsvType::none;
    std::set<std::string> different;
    for (size_t r = 1; r < rows.size(); ++r) {
      if (c >= rows[r].size()) continue;
      type = csv_widened(type, rows[r][c]);
      different.insert(content(rows[r][c]));
    }
    if (type == CsvType::integer || type == CsvType::real) return true;
    const std::string name = content(first[c]);
    const bool word = !name.empty() && name.size() <= 64 && std::isalpha(static_cast<unsigned char>(name[0]));
    if (differ && word && rows.size() > 20 && different.size() * 10 < rows.size() &&
        !different.contains(name))
      return true;
  }
  return false;
}

}  // namespace

CsvType csv_widened(CsvType type, const CsvField& field) {
  if (type == CsvType::text || csv_missing(field)) return type;
  int64_t integer = 0;
  double real = 0;
  if (type != CsvType::real && csv_short_integer(field, integer)) return CsvType::integer;
  std::string unquoted;
  std::string_view text = field.text();
  if (field.quoted) {
    text = unquoted = csv_unquoted(field);
    if (unquoted.empty()) return type;
  }
  if (csv_integer(text, integer)) return std::max(type, CsvType::integer);
  return csv_real(text, real) ? CsvType::real : CsvType::text;
}

CsvShape csv_shape(const std::string& path, std::string_view head, bool whole, std::optional<bool> header) {
  CsvShape shape;
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"))
    fail<InputError>("{}: is UTF-16; convert it to UTF-8 first (iconv -f utf-16 -t utf-8)", path);
  if (head.starts_with("\xef\xbb\xbf")) {
    head.remove_prefix(3);
    shape.begin = 3;
  }
  shape.dialect.delimiter = delimiter_of(head, whole);
  std::vector<size_t> ends;
  Rows rows = first_rows(head, whole, shape.dialect, ends);
  if (shape.dialect.delimiter == '\t' && !quotes_quote(rows)) {
    shape.dialect.quotes = false;
    ends.clear();
    rows = first_rows(head, whole, shape.dialect, ends);
  }
  if (rows.empty() && !whole) return shape;
  if (rows.empty())
    fail<InputError>("{}: there is no whole row in it: it is empty, or a quote is never closed", path);
  shape.header = header.value_or(looks_like_header(rows));
  std::set<std::string> taken;
  for (size_t c = 0; c < rows[0].size(); ++c) {
    std::string name = shape.header ? content(rows[0][c]) : std::string();
    if (name.empty()) name = fmt::format("c{}", c);
    const std::string base = name;
    for (int k = 2; !taken.insert(name).second; ++k) name = fmt::format("{}_{}", base, k);
    if (name != base) shape.renamed.push_back(name);
    shape.columns.push_back(name);
  }
  if (shape.header) shape.begin += ends[0];
  return shape;
}

}  // namespace millrace::data
