#include "data/formats/text_sniff.h"

#include <algorithm>
#include <vector>

#include "base/contains.h"
#include "data/formats/csv_cells.h"
#include "data/formats/csv_scan.h"

namespace millrace::data {
namespace {

constexpr size_t sure_fields = 4;  // so many, equally often: commas of prose do not stand so

/// What the rows of a text are like, cut at a delimiter.
struct DelimitedRows {
  size_t rows = 0, fields = 0;
  bool even = true;                  // all rows have as many fields as the first
  bool blank_after = false;          // a field begins with a blank, as after the commas of prose
  std::vector<CsvTally> first, all;  // of the first row, which may be names, and of those behind it
};

DelimitedRows cut_rows(std::string_view text, bool whole, CsvDialect dialect) {
  DelimitedRows found;
  std::vector<CsvField> row;
  scan_csv(
      text.data(), text.data() + text.size(), dialect, [&](const CsvField& field) { row.push_back(field); },
      [&](const char* next) {
        const bool complete = whole || next[-1] == '\n' || found.rows == 0;
        if (complete && (row.size() > 1 || (!row.empty() && row[0].size > 0))) {
          if (found.rows == 0) found.first.resize(found.fields = row.size());
          if (found.rows == 1) found.all.resize(found.fields);
          found.even &= row.size() == found.fields;
          auto& tallies = found.rows == 0 ? found.first : found.all;
          for (size_t c = 0; c < row.size() && found.even; ++c) {
            tallies[c].add(row[c], 0, {});
            found.blank_after |= c > 0 && row[c].data[-1] == ' ';
          }
          ++found.rows;
        }
        row.clear();
        return found.even;
      });
  return found;
}

bool has_numbers(const std::vector<CsvTally>& columns) {
  return std::any_of(columns.begin(), columns.end(),
                     [](const CsvTally& tally) { return csv_column(tally, false).of_digits(); });
}

/// Blanks delimit numbers only: two or more in each row, below numbers or names.
bool is_delimited_by_blanks(std::string_view text, bool whole) {
  const DelimitedRows found = cut_rows(text, whole, {' ', true});
  if (!found.even || found.rows < 2 || found.fields < 2) return false;
  const auto numbers = [](const CsvTally& tally) {
    return tally.other == 0 && csv_column(tally, false).of_digits();
  };
  const auto word = [](const CsvTally& tally) { return tally.numbers() == 0 && tally.other > 0; };
  return std::all_of(found.all.begin(), found.all.end(), numbers) &&
         (std::all_of(found.first.begin(), found.first.end(), numbers) ||
          std::all_of(found.first.begin(), found.first.end(), word));
}

bool is_delimited(std::string_view text, bool whole) {
  for (const CsvDialect dialect :
       {CsvDialect{'\t', true}, {'\t', false}, {';', true}, {'|', true}, {',', true}}) {
    const DelimitedRows found = cut_rows(text, whole, dialect);
    if (!found.even || found.rows == 0) continue;
    const bool numbers = has_numbers(found.rows > 1 ? found.all : found.first);
    // One column: numbers below a name.
    if (found.fields < 2 && !(numbers && found.rows > 1 && !has_numbers(found.first))) continue;
    if (numbers || (found.rows > 1 && (found.fields >= sure_fields || !found.blank_after))) return true;
  }
  return is_delimited_by_blanks(text, whole);
}

}  // namespace

bool is_written(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](unsigned char c) {
    return c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f');
  });
}

bool is_delimited_by_tabs(std::string_view head, bool whole) {
  const DelimitedRows found = cut_rows(head, whole, {'\t', false});
  return found.even && found.rows >= 2 && found.fields >= 2;
}

const char* text_format(std::string_view head, bool whole, bool lines) {
  if (head.empty() || !is_written(head)) return nullptr;
  std::string_view text = head;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    const size_t next = text.find_first_not_of(" \t", first + 1);
    return next != std::string_view::npos && (text[next] == '"' || text[next] == '}') ? "jsonl"
           : lines                                                                    ? "text"
                                                                                      : nullptr;
  }
  // What spreadsheets and people put before the rows.
  while (text.starts_with("sep=") || text.starts_with('#'))
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  if (is_delimited(text, whole)) return "csv";
  return lines ? "text" : nullptr;
}

bool begins_with_names(std::string_view head, std::span<const std::string> columns) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::string_view line = head.substr(0, head.find('\n'));
  for (const char delimiter : {'\t', ';', '|', ','}) {
    size_t fields = 0, known = 0;
    scan_csv(
        line.data(), line.data() + line.size(), {delimiter, true},
        [&](const CsvField& field) {
          known += contains(columns, csv_text(field));
          ++fields;
        },
        [](const char*) { return false; });
    if (fields > 1 && known > 0 && (known >= columns.size() || known > 1)) return true;
  }
  return false;
}

}  // namespace millrace::data
