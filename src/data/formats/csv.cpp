// CSV and TSV after RFC 4180, as it is met: any of , ; | and tab, blanks around values, a first line of names
// or none. Chunks are searched for rows at the same time, each from the first newline in it on, as if no
// quote were open there. Where the chunk before ends elsewhere than this one began, a newline was within
// quotes: the chunk is searched again.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "base/contains.h"
#include "base/file.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "base/words.h"
#include "data/formats/csv_cells.h"
#include "data/formats/csv_scan.h"
#include "data/formats/csv_sniff.h"
#include "data/formats/formats.h"
#include "data/table/column_values.h"

namespace millrace::data {
namespace {

constexpr uint64_t csv_chunk_bytes = 1 << 20, most_row_bytes = uint64_t{1} << 30, head_bytes = 1 << 18;

/// Rows that begin within a piece of a file.
struct Chunk {
  size_t file = 0;
  uint64_t stop = 0;             // rows that begin before are its own
  uint64_t begin = 0, end = 0;   // from its first row to behind its last
  int64_t first_row = 0;         // of the data set
  std::vector<uint32_t> starts;  // from `begin`
  std::vector<CsvTally> tallies;
  bool failed = false;    // it found no end of a row: the guess where it begins was wrong
  int64_t merged = 0;     // values in quotes that look like rows
  bool needed = false;    // quotes hold together what would fall apart without them
  uint64_t odd_at = 0;    // the first row with another number of values …
  size_t odd_fields = 0;  // … and that; 0: none
};

/// Quotes of a tab-separated file seem to be letters.
struct QuotesAreLetters : InputError {
  using InputError::InputError;
};

class Csv final : public Dataset {
 public:
  Csv(const std::string& path, Files files, const OpenOptions& options, TabQuotes quotes)
      : Dataset(path), files_(std::move(files)), missing_(options.missing), tab_quotes_(quotes) {
    for (size_t f = 0; f < files_.size(); ++f) open_file(f, options);
    note_quotes();
    for (Chunk& chunk : chunks_) {
      chunk.first_row = count_;
      count_ += static_cast<int64_t>(chunk.starts.size());
    }
    if (count_ == 0) fail_without_rows();
    for (size_t c = 0; c < columns_.size(); ++c) {
      const CsvColumn column = csv_column(tallies_[c].tally, dialect_.delimiter == ';');
      decimal_commas_.push_back(column.decimal_comma);
      bad_.push_back(column.bad > 0);
      if (contains(options.texts, columns_[c].name)) continue;
      columns_[c].kind = column.type == CsvColumn::Type::integer ? ColumnKind::integer
                         : column.type == CsvColumn::Type::real  ? ColumnKind::real
                                                                 : ColumnKind::text;
      note_cells(c, column);
    }
    tallies_ = {};
  }

  int64_t count() const override { return count_; }
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override { return files_; }
  std::optional<SampleExtent> extent(int64_t index) const override {
    const Chunk& chunk = chunk_of(index);
    const auto [begin, end] = range(chunk, index, index + 1);
    return SampleExtent{chunk.file, begin, end - begin};
  }

  bool decimal_comma(size_t column) const override { return decimal_commas_.at(column); }

  Value read(int64_t index, size_t column) const override {
    const auto values = std::make_shared<ColumnValues>();
    start_values(*values, columns_.at(column).kind, 1);
    const Chunk& chunk = chunk_of(index);
    const auto [begin, end] = range(chunk, index, index + 1);
    const Bytes bytes = files_[chunk.file]->read(begin, end - begin);
    size_t at = 0;
    Strings strings;
    scan(
        bytes,
        [&](const CsvField& field) {
          if (at++ == column) put(field, *values, 0, column, strings, begin);
        },
        [](const char*) { return true; });
    if (at <= column) changed(chunk, begin);
    return value_at(values, 0);
  }

  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<ColumnValues>& values) const override {
    std::vector<int> slots(columns_.size(), -1);
    values.resize(columns.size());
    for (size_t k = 0; k < columns.size(); ++k) {
      slots[columns[k]] = static_cast<int>(k);
      start_values(values[k], columns_[columns[k]].kind, static_cast<size_t>(count));
    }
    const auto strings = std::make_shared<Strings>();
    std::vector<std::shared_ptr<const void>> owners = {strings};
    for (int64_t row = first; row < first + count;) {
      const Chunk& chunk = chunk_of(row);
      const int64_t last =
          std::min(first + count, chunk.first_row + static_cast<int64_t>(chunk.starts.size()));
      const auto [begin, end] = range(chunk, row, last);
      const auto bytes = std::make_shared<const Bytes>(files_[chunk.file]->read(begin, end - begin));
      owners.push_back(bytes);
      read_rows(*bytes, chunk, begin, row - first, last - first, slots, values, *strings);
      row = last;
    }
    for (ColumnValues& each : values)
      if (each.kind == ColumnKind::text) each.owners = owners;
    // A column may be asked for more than once.
    for (size_t k = 0; k < columns.size(); ++k)
      if (const auto slot = static_cast<size_t>(slots[columns[k]]); slot != k) values[k] = values[slot];
    return true;
  }

 private:
  using Strings = std::deque<std::string>;

  // ---- finding rows

  void open_file(size_t f, const OpenOptions& options) {
    const RandomAccessFile& file = *files_[f];
    // Files behind the first have names when the first has.
    const std::optional<bool> header = f > 0 ? std::optional(header_) : options.header;
    CsvShape shape;
    for (uint64_t size = head_bytes; shape.columns.empty(); size *= 8) {
      if (size / 8 > most_row_bytes)
        fail<InputError>(
            "{}: no row ends within the first {} bytes: a quote is never closed, or this is no CSV",
            file.path(), size / 8);
      size = std::min(size, file.size());
      shape = csv_shape(file.path(), file.read(0, size).text(), size == file.size(), header, missing_,
                        tab_quotes_);
    }
    std::vector<Column> columns;
    for (const std::string& name : shape.columns) columns.push_back({name, ColumnKind::text});
    if (f == 0) {
      if (!header && shape.only_words && files_.size() == 1) {
        // Names without rows; but where columns are known by name, and it has none of these, the one row.
        const CsvShape named =
            csv_shape(file.path(), file.read(0, file.size()).text(), true, true, {}, tab_quotes_);
        const auto has = [&](const std::string& name) { return contains(named.columns, name); };
        if (options.texts.empty() || std::any_of(options.texts.begin(), options.texts.end(), has))
          shape = named;
      }
      columns_.clear();
      for (const std::string& name : shape.columns) columns_.push_back({name, ColumnKind::text});
      tallies_.resize(columns_.size());
      dialect_ = shape.dialect;
      header_ = shape.header;
      if (!shape.renamed.empty())
        note(fmt::format("{}: some names of columns come again; the later ones are called {}", file.path(),
                         fmt::join(shape.renamed, ", ")));
    } else if (columns != columns_ || shape.dialect.delimiter != dialect_.delimiter ||
               shape.dialect.newline != dialect_.newline) {
      fail<InputError>(
          "{}: has the columns {}, but {} has {}: files that are read together must have the same",
          file.path(), names(columns), files_[0]->path(), names(columns_));
    }
    find_chunks(f, shape.begin);
  }

  /// Some chunks at a time: what is known of each column of each would be too much for very wide tables.
  void find_chunks(size_t f, uint64_t rows_begin) {
    const RandomAccessFile& file = *files_[f];
    const auto pieces =
        static_cast<int64_t>((file.size() - rows_begin + csv_chunk_bytes - 1) / csv_chunk_bytes);
    const auto width = static_cast<int64_t>(columns_.size() * sizeof(CsvTally));
    const int64_t together = std::clamp<int64_t>((int64_t{64} << 20) / width, 16, 4096);
    uint64_t expected = rows_begin;
    for (int64_t first = 0; first < pieces; first += together) {
      std::vector<Chunk> chunks(static_cast<size_t>(std::min(together, pieces - first)));
      parallel_for(std::ssize(chunks), 0, [&](int64_t k) {
        Chunk& chunk = chunks[static_cast<size_t>(k)];
        chunk.file = f;
        const uint64_t from = rows_begin + static_cast<uint64_t>(first + k) * csv_chunk_bytes;
        chunk.stop = std::min(from + csv_chunk_bytes, file.size());
        chunk.begin = first + k == 0 ? from : guessed_begin(file, from);
        if (chunk.begin >= chunk.stop)
          chunk.failed = true;
        else
          find_rows(file, chunk, true);
      });
      for (Chunk& chunk : chunks) {
        take_chunk(file, chunk, expected);
        expected = chunk.end;
      }
    }
  }

  void take_chunk(const RandomAccessFile& file, Chunk& chunk, uint64_t expected) {
    if (chunk.failed || chunk.begin != expected) {
      const Chunk bare{chunk.file, chunk.stop, expected, expected, 0, {}, {}, false, 0, 0};
      chunk = bare;
      if (expected < chunk.stop) find_rows(file, chunk, false);
    }
    merged_ += chunk.merged;
    quotes_needed_ |= chunk.needed;
    if (chunk.odd_fields > 0)
      fail<InputError>(
          "{}: line {} has {} value{}, the first row has {}; repair that line, or quote a value that has the "
          "delimiter in it",
          file.path(), line_of(file, chunk.odd_at), chunk.odd_fields, chunk.odd_fields == 1 ? "" : "s",
          columns_.size());
    for (size_t c = 0; c < chunk.tallies.size(); ++c) {
      if (tallies_[c].tally.other == 0) tallies_[c].file = chunk.file;
      tallies_[c].tally.add(chunk.tallies[c]);
    }
    chunk.tallies = {};
    if (!chunk.starts.empty()) chunks_.push_back(std::move(chunk));
  }

  /// The number of the line that the byte is in, from 1 on.
  uint64_t line_of(const RandomAccessFile& file, uint64_t at) const {
    uint64_t line = 1;
    for (uint64_t from = 0; from < at; from += csv_chunk_bytes) {
      const Bytes bytes = file.read(from, std::min(csv_chunk_bytes, at - from));
      const std::string_view text = bytes.text();
      line += static_cast<uint64_t>(std::count(text.begin(), text.end(), dialect_.newline));
    }
    return line;
  }

  [[noreturn]] void fail_without_rows() const {
    if (header_)
      fail<InputError>(
          "{}: has names of columns ({}) and no rows; copy it again (--header no, or data.header = \"no\", "
          "where that line is a row)",
          path(), names(columns_));
    fail<InputError>("{}: has no rows; copy it again", path());
  }

  /// Where quotes only merge rows, they are letters.
  void note_quotes() {
    if (tab_quotes_ == TabQuotes::found && merged_ > 0 && !quotes_needed_)
      fail<QuotesAreLetters>("{}: values in quotes look like rows", path());
    if (tab_quotes_ == TabQuotes::letters)
      note(fmt::format(
          "{}: quotes that open values are not closed in these, so that they are taken as letters", path()));
    else if (merged_ > 0)
      note(fmt::format("{}: {} in quotes {} several lines that look like rows", path(),
                       merged_ == 1 ? "a value" : fmt::format("{} values", merged_),
                       merged_ == 1 ? "has" : "have"));
  }

  /// What the user should know of how a column's cells are taken.
  void note_cells(size_t c, const CsvColumn& column) {
    const CsvTally& tally = tallies_[c].tally;
    const std::string& name = columns_[c].name;
    const auto first = [&] {
      const RandomAccessFile& file = *files_[tallies_[c].file];
      const std::string text(file.read(tally.first_at, tally.first_size).text().substr(0, 40));
      return fmt::format("'{}' in line {}", text, line_of(file, tally.first_at));
    };
    if (columns_[c].kind == ColumnKind::text) {
      // Nearly all numbers: somebody will wonder.
      if (column.codes)
        note(fmt::format("{}: {}: {} of {} numbers begin with 0, as codes do (007): its values are texts",
                         path(), name, tally.padded, tally.numbers()));
      else if (tally.numbers() > tally.cells() / 2 && tally.other > 0)
        note(fmt::format("{}: {}: {} of {} cells are no numbers (the first: {}): its values are texts",
                         path(), name, tally.other, tally.cells(), first()));
      else if (tally.other == 0 && tally.numbers() > 0)
        note(
            fmt::format("{}: {}: its numbers are not all written alike (signs of currencies, %, decimal "
                        "commas): its values are texts",
                        path(), name));
      return;
    }
    if (tally.other > 0)
      note(fmt::format("{}: {}: {} of {} cells {} (the first: {}) and {} as missing", path(), name,
                       column.bad, tally.cells(), column.bad == 1 ? "is no number" : "are no numbers",
                       first(), column.bad == 1 ? "counts" : "count"));
    if (const auto written = csv_ways(tally, column); !written.empty())
      note(fmt::format("{}: {}: numbers are written with {}", path(), name, fmt::join(written, ", ")));
  }

  static std::string names(const std::vector<Column>& columns) {
    std::vector<std::string> list;
    for (size_t c = 0; c < std::min<size_t>(columns.size(), 20); ++c) list.push_back(columns[c].name);
    return fmt::format("{}{}", fmt::join(list, ", "), columns.size() > 20 ? " …" : "");
  }

  /// Behind the first newline at `from` - 1 or later; the file's end when there is none near.
  uint64_t guessed_begin(const RandomAccessFile& file, uint64_t from) const {
    const uint64_t size = std::min(csv_chunk_bytes + 1, file.size() - from + 1);
    const Bytes bytes = file.read(from - 1, size);
    const void* newline = std::memchr(bytes.data(), dialect_.newline, size);
    return newline ? from + static_cast<uint64_t>(static_cast<const uint8_t*>(newline) - bytes.data())
                   : file.size();
  }

  /// All rows from chunk.begin on that begin before chunk.stop. `guess`: a row of more than a megabyte means
  /// a wrong guess.
  void find_rows(const RandomAccessFile& file, Chunk& chunk, bool guess) const {
    for (uint64_t slack = std::min<uint64_t>(csv_chunk_bytes, 1 << 16);; slack *= 4) {
      const uint64_t end = std::min(file.size(), chunk.stop + slack);
      if (find_rows_until(file, chunk, end)) return;
      if (end == file.size() && !guess) {
        if (tab_quotes_ == TabQuotes::found && tabs_and_quotes())
          fail<QuotesAreLetters>("{}: a quote is never closed", file.path());
        fail<InputError>("{}: the quote in the row in line {} is never closed; repair that line", file.path(),
                         line_of(file, chunk.end));
      }
      if (slack > most_row_bytes)
        fail<InputError>("{}: the row in line {} has more than {} bytes; is a quote not closed?", file.path(),
                         line_of(file, chunk.end), most_row_bytes);
      chunk.failed = guess && (end == file.size() || slack >= csv_chunk_bytes);
      if (chunk.failed) return;
    }
  }

  bool find_rows_until(const RandomAccessFile& file, Chunk& chunk, uint64_t end) const {
    const Bytes bytes = file.read(chunk.begin, end - chunk.begin);
    const char* data = bytes.text().data();
    const char* row_start = data;
    const uint64_t stop = chunk.stop - chunk.begin;
    const size_t width = columns_.size();
    size_t fields = 0;
    bool something = false, complete = false;
    const bool tabs = tabs_and_quotes();
    chunk.starts.clear();
    chunk.odd_fields = 0;
    chunk.merged = 0;
    chunk.needed = false;
    size_t quoted = 0;  // of the row's fields
    std::vector<CsvTally> tallies(width);
    const bool closed = scan(
        bytes,
        [&](const CsvField& field) {
          if (fields < width)
            tallies[fields].add(field, chunk.begin + static_cast<uint64_t>(field.data - data), missing_);
          if (tabs && field.quoted) {
            ++quoted;
            if (swallows_rows(field, dialect_, width))
              ++chunk.merged;
            else
              chunk.needed |= needs_quotes(field, dialect_);
          }
          something |= field.size > 0;
          ++fields;
        },
        [&](const char* next) {
          // What the window cuts off is no row, except at the end of the file.
          if (next[-1] != dialect_.newline && end < file.size()) return false;
          const auto at = static_cast<uint64_t>(row_start - data);
          chunk.needed |= quoted > 1 && quoted == fields;
          quoted = 0;
          if (something || fields > 1) {
            if (fields != width && chunk.odd_fields == 0) {
              chunk.odd_fields = fields;
              chunk.odd_at = chunk.begin + at;
            }
            chunk.starts.push_back(static_cast<uint32_t>(at));
          }
          row_start = next;
          fields = 0;
          something = false;
          complete = static_cast<uint64_t>(next - data) >= stop;
          return !complete;
        });
    chunk.end = chunk.begin + static_cast<uint64_t>(row_start - data);
    chunk.tallies = std::move(tallies);
    return complete || (closed && end == file.size());
  }

  bool tabs_and_quotes() const { return dialect_.delimiter == '\t' && dialect_.quotes; }

  // ---- reading values

  template <typename Field, typename Row>
  bool scan(const Bytes& bytes, Field&& field, Row&& row) const {
    const char* data = bytes.text().data();
    return scan_csv(data, data + bytes.size(), dialect_, field, row);
  }

  const Chunk& chunk_of(int64_t row) const {
    return *std::prev(std::ranges::upper_bound(chunks_, row, {}, &Chunk::first_row));
  }

  /// The bytes of rows first to last - 1, all of this chunk.
  static std::pair<uint64_t, uint64_t> range(const Chunk& chunk, int64_t first, int64_t last) {
    const auto at = static_cast<size_t>(first - chunk.first_row),
               to = static_cast<size_t>(last - chunk.first_row);
    return {chunk.begin + chunk.starts.at(at),
            to < chunk.starts.size() ? chunk.begin + chunk.starts[to] : chunk.end};
  }

  [[noreturn]] void changed(const Chunk& chunk, uint64_t at) const {
    fail<InputError>(
        "{}: the row in line {} is not what it was when the file was opened: the file has changed",
        files_[chunk.file]->path(), line_of(*files_[chunk.file], at));
  }

  void read_rows(const Bytes& bytes, const Chunk& chunk, uint64_t begin, int64_t row, int64_t last,
                 const std::vector<int>& slots, std::vector<ColumnValues>& values, Strings& strings) const {
    size_t fields = 0;
    bool something = false;
    scan(
        bytes,
        [&](const CsvField& field) {
          if (fields < slots.size() && slots[fields] >= 0 && row < last)
            put(field, values[static_cast<size_t>(slots[fields])], static_cast<size_t>(row), fields, strings,
                begin);
          something |= field.size > 0;
          ++fields;
        },
        [&](const char*) {
          if (something || fields > 1) {
            if (fields != slots.size() || row >= last) changed(chunk, begin);
            ++row;
          } else if (slots[0] >= 0 && row < last) {
            // An empty line said that a value is missing that is yet to come.
            auto& present = values[static_cast<size_t>(slots[0])].present;
            if (!present.empty()) present[static_cast<size_t>(row)] = 1;
          }
          fields = 0;
          something = false;
          return true;
        });
    if (row != last) changed(chunk, begin);
  }

  /// The field as value i of its column.
  void put(const CsvField& field, ColumnValues& values, size_t i, size_t column, Strings& strings,
           uint64_t begin) const {
    if (values.kind == ColumnKind::integer && missing_.empty() &&
        csv_short_integer(field, values.integers[i]))
      return;
    bool missing = csv_missing(field);
    if (!missing) {
      std::string_view text = field.text();
      if (field.quoted)
        text = csv_plainly_quoted(field) ? text.substr(1, text.size() - 2)
                                         : strings.emplace_back(csv_text(field));
      missing = contains(missing_, text);
      if (values.kind == ColumnKind::text && !missing) {
        values.contents[i] = text;
        return;
      }
      missing = missing || put_number(text, values, i, column, begin);
    }
    if (!missing) return;
    if (values.present.empty()) values.present.assign(values.size(), 1);
    values.present[i] = 0;
  }

  /// True for what is missing there, or no number where some are not.
  bool put_number(std::string_view text, ColumnValues& values, size_t i, size_t column,
                  uint64_t begin) const {
    if (csv_missing_number(text)) return true;
    if (values.kind == ColumnKind::integer) {
      if (csv_integer(text, values.integers[i])) return false;
    } else if (!decimal_commas_[column] && csv_real(text, values.reals[i])) {
      return false;
    } else if (const auto number = csv_written_number(text, decimal_commas_[column])) {
      values.reals[i] = *number;
      return false;
    }
    if (!bad_[column])
      fail<InputError>("{}: '{}' near byte {} was a number when the file was opened: the file has changed",
                       path(), text.substr(0, 40), begin);
    return true;
  }

  Files files_;
  std::vector<Chunk> chunks_;
  int64_t count_ = 0;
  CsvDialect dialect_;
  TabQuotes tab_quotes_;
  int64_t merged_ = 0;
  bool quotes_needed_ = false;
  bool header_ = false;
  std::vector<std::string> missing_;
  std::vector<char> decimal_commas_, bad_;  // of each column: are numbers so written; are cells no numbers
  /// Of each column while it is opened: of its cells, and the file of the first that is no number.
  struct ColumnTally {
    CsvTally tally;
    size_t file = 0;
  };
  std::vector<ColumnTally> tallies_;
};

std::unique_ptr<Dataset> open_csv(const std::string& path, Files files, const OpenOptions& options) {
  try {
    return std::make_unique<Csv>(path, files, options, TabQuotes::found);
  } catch (const QuotesAreLetters&) {
  }
  try {
    return std::make_unique<Csv>(path, files, options, TabQuotes::letters);
  } catch (const InputError&) {  // then they are none
    return std::make_unique<Csv>(path, std::move(files), options, TabQuotes::quotes);
  }
}

/// As RFC 4180 has it, with "\n" as the end of a line; names in the first line.
class CsvWriter final : public DatasetWriter {
 public:
  CsvWriter(const std::string& path, const std::vector<Column>& columns)
      : delimiter_(has_ending(path, {".tsv", ".tab"}) ? '\t' : ','), file_(path) {
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

MILLRACE_FORMAT(csv){
    .name = "csv",
    .doc = "CSV or TSV (.csv, .tsv, .tab, .psv, .data)",
    .place = 80,
    .matches =
        [](std::string_view path, std::span<const uint8_t> head) {
          return has_ending(path, {".csv", ".tsv", ".tab", ".psv", ".data"}) && !contains(head, 0);
        },
    .open = open_csv,
    .create = create_as<CsvWriter>,
    .pipes = true};

}  // namespace millrace::data
