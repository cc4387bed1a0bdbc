// CSV as RFC 4180 has it, with "\n" as the end of a line; names in the first line.
#include <cmath>

#include "base/file.h"
#include "base/format.h"
#include "data/formats/csv_scan.h"
#include "data/formats/formats.h"

namespace millrace::data {
namespace {

class CsvWriter final : public DatasetWriter {
 public:
  CsvWriter(const std::string& path, const std::vector<Column>& columns)
      : delimiter_(path.ends_with(".tsv") || path.ends_with(".tab") ? '\t' : ','), file_(path) {
    for (const Column& column : columns)
      if (!is_tabular(column.kind) && column.kind != ColumnKind::json)
        fail<InputError>(
            "{}: CSV holds numbers and texts; it has no place for the column '{}' ({}); choose others with "
            "--columns, or another format (parquet)",
            path, column.name, kind_name(column.kind));
    for (size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) line_ += delimiter_;
      quote(columns[c].name, false);
    }
    end_line();
  }

  void add(std::span<const Value> values) override {
    for (size_t c = 0; c < values.size(); ++c) {
      if (c > 0) line_ += delimiter_;
      if (const auto* integer = std::get_if<int64_t>(&values[c]))
        fmt::format_to(std::back_inserter(line_), "{}", *integer);
      else if (const auto* real = std::get_if<double>(&values[c]))
        put_real(*real);
      else if (const auto* text = std::get_if<std::string>(&values[c]))
        quote(*text, true);
    }
    end_line();
  }

  void finish() override { file_.commit(); }

 private:
  /// Not a number is what is missing; else as many digits as give the same number back.
  void put_real(double real) {
    if (!std::isnan(real)) fmt::format_to(std::back_inserter(line_), "{}", real);
  }

  /// Quotes where the text would come back as something else without them. An empty text is one, nothing is
  /// missing.
  void quote(std::string_view text, bool value) {
    const CsvField field = trimmed_field(text.data(), text.data() + text.size());
    const bool as_is = field.size == text.size() && !field.quoted && !(value && csv_missing(field)) &&
                       text.find_first_of("\r\n\"") == std::string_view::npos &&
                       text.find_first_of(",;|\t") == std::string_view::npos;
    if (as_is) {
      line_ += text;
      return;
    }
    line_ += '"';
    for (const char c : text) line_.append(c == '"' ? 2 : 1, c);
    line_ += '"';
  }

  void end_line() {
    // A row of one missing value would be an empty line, which readers skip.
    if (line_.empty()) line_ = "NA";
    line_ += '\n';
    file_.write(line_);
    line_.clear();
  }

  char delimiter_;
  AtomicFile file_;
  std::string line_;
};

}  // namespace

std::unique_ptr<DatasetWriter> create_csv(const std::string& path, const std::vector<Column>& columns) {
  return std::make_unique<CsvWriter>(path, columns);
}

}  // namespace millrace::data
