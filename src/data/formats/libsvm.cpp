// LIBSVM and SVMlight: `label [qid:Q] index:value … [# comment]`, indices growing from 1 (or 0). Beside x
// there may be x.query with the number of rows of each query, line by line.
// https://www.csie.ntu.edu.tw/~cjlin/libsvm/faq.html
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "base/words.h"
#include "data/formats/csv_scan.h"
#include "data/formats/formats.h"
#include "data/formats/lines.h"
#include "data/io/location.h"
#include "data/io/open_file.h"
#include "data/io/temporary_file.h"

namespace millrace::data {
namespace {

// Rows of more features stay as they are stored.
constexpr int64_t most_dense = 4096, largest_index = INT32_MAX;

/// The file of the queries of one of rows.
std::string queries_beside(const std::string& path) { return path + ".query"; }

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// The next word of a line, up to a comment; empty at the end.
std::string_view next_word(std::string_view& line) {
  size_t begin = 0;
  while (begin < line.size() && is_space(line[begin])) ++begin;
  if (begin < line.size() && line[begin] == '#') begin = line.size();
  size_t end = begin;
  while (end < line.size() && !is_space(line[end]) && line[end] != '#') ++end;
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

bool has_row(std::string_view line) { return !next_word(line).empty(); }

struct Row {
  double label = 0;
  bool has_query = false;
  int64_t query = 0;
  std::vector<int64_t> indices;
  std::vector<float> values;
};

/// "" or what is wrong.
std::string parse_row(std::string_view line, Row& row) {
  row.has_query = false;
  row.indices.clear();
  row.values.clear();
  const std::string_view label = next_word(line);
  if (!csv_real(label, row.label))
    return fmt::format("'{}' is no label; it must be a number", label.substr(0, 40));
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    const size_t colon = word.find(':');
    const auto wrong = [&](const char* what) { return fmt::format("'{}' {}", word.substr(0, 40), what); };
    if (colon == std::string_view::npos) return wrong("is no index:value");
    if (word.substr(0, colon) == "qid") {
      if (!row.indices.empty() || !csv_integer(word.substr(colon + 1), row.query))
        return wrong("is no query; qid:NUMBER stands behind the label");
      row.has_query = true;
      continue;
    }
    int64_t index = 0;
    double value = 0;
    if (!csv_integer(word.substr(0, colon), index) || index < 0 || index > largest_index)
      return wrong("has no index from 0 to 2^31 - 1");
    if (!csv_real(word.substr(colon + 1), value)) return wrong("has no number behind the colon");
    if (!row.indices.empty() && index <= row.indices.back()) return wrong("does not follow a smaller index");
    row.indices.push_back(index);
    row.values.push_back(static_cast<float>(value));
  }
  return {};
}

class LibSvm final : public LineDataset {
 public:
  LibSvm(const std::string& path, Files files) : LineDataset(path, std::move(files), has_row) {
    examine();
    read_queries();
    columns_ = {{"label", whole_labels_ ? ColumnKind::integer : ColumnKind::real}};
    if (dense_) {
      columns_.push_back({"features", ColumnKind::array});
    } else {
      columns_.push_back({"indices", ColumnKind::array});
      columns_.push_back({"values", ColumnKind::array});
    }
    if (has_queries_ || !query_ends_.empty()) columns_.push_back({"query", ColumnKind::integer});
  }

  Value read(int64_t index, size_t column) const override {
    const bool query = column + 1 == columns_.size() && columns_[column].name == "query";
    if (query && !query_ends_.empty())
      return std::upper_bound(query_ends_.begin(), query_ends_.end(), index) - query_ends_.begin();
    Row row;
    parse(index, row);
    if (query) return row.has_query ? Value(row.query) : Value();
    if (column == 0) return whole_labels_ ? Value(static_cast<int64_t>(row.label)) : Value(row.label);
    const auto size = static_cast<int64_t>(row.indices.size());
    if (dense_) {
      Array features(f32, {last_index_ - first_index_ + 1});
      for (size_t k = 0; k < row.indices.size(); ++k)
        if (row.indices[k] >= first_index_ && row.indices[k] <= last_index_)
          features.as<float>()[static_cast<size_t>(row.indices[k] - first_index_)] = row.values[k];
      return features;
    }
    if (column == 1) {
      Array indices(i32, {size});
      for (size_t k = 0; k < row.indices.size(); ++k)
        indices.as<int32_t>()[k] = static_cast<int32_t>(row.indices[k] - first_index_);
      return indices;
    }
    Array values(f32, {size});
    std::copy(row.values.begin(), row.values.end(), values.as<float>().begin());
    return values;
  }

  std::optional<ArrayElements> elements(size_t column) const override {
    if (!dense_ || column != 1) return std::nullopt;
    return ArrayElements{first_index_, last_index_ - first_index_ + 1};
  }

 private:
  void parse(int64_t index, Row& row) const {
    const std::string wrong = parse_row(lines_.read(index).text(), row);
    if (!wrong.empty()) fail<InputError>("{}: {}; repair that line", name(index), wrong);
  }

  /// The kinds of columns depend on all rows.
  void examine() {
    constexpr int64_t part = 1024;
    const int64_t parts = (count() + part - 1) / part;
    struct Found {
      int64_t most = -1;
      bool zero = false, whole = true, queries = false;
    };
    std::vector<Found> list(static_cast<size_t>(parts));
    parallel_for(parts, 0, [&](int64_t p) {
      Found& found = list[static_cast<size_t>(p)];
      Row row;
      for (int64_t i = p * part; i < std::min(count(), (p + 1) * part); ++i) {
        parse(i, row);
        if (!row.indices.empty()) {
          found.zero |= row.indices.front() == 0;
          found.most = std::max(found.most, row.indices.back());
        }
        found.whole &= std::abs(row.label) < 1e15 && row.label == std::floor(row.label);
        found.queries |= row.has_query;
      }
    });
    first_index_ = 1;
    for (const Found& found : list) {
      last_index_ = std::max(last_index_, found.most);
      if (found.zero) first_index_ = 0;
      whole_labels_ &= found.whole;
      has_queries_ |= found.queries;
    }
    dense_ = last_index_ - first_index_ < most_dense;
    if (last_index_ < first_index_) last_index_ = first_index_;
  }

  /// Sizes of queries from the files beside; either all files have one or none.
  void read_queries() {
    int64_t rows = 0;
    size_t with = 0;
    for (size_t f = 0; f < files().size(); ++f) {
      const std::string beside = queries_beside(files()[f]->path());
      const auto file = is_piped(files()[f]->path()) ? nullptr : open_beside(beside);
      if (!file) continue;
      ++with;
      const Lines sizes({file}, line_with_text);
      for (int64_t q = 0; q < sizes.count(); ++q) {
        const Bytes line = sizes.read(q);
        const std::string_view text = trimmed(line.text());
        int64_t size = 0;
        if (!csv_integer(text, size) || size < 0 || size > count() - rows)
          fail<InputError>("{}: the size of query {}, '{}', does not fit the rows of {}", beside, q,
                           text.substr(0, 40), files()[f]->path());
        rows += size;
        query_ends_.push_back(rows);
      }
      int64_t last_row = rows;
      while (last_row < count() && lines_.extent(last_row).file <= f) ++last_row;
      const bool short_of = last_row != rows, beyond = rows > 0 && lines_.extent(rows - 1).file > f;
      if (short_of || beyond)
        fail<InputError>(
            "{}: the sizes of its queries do not add up to the rows of {}; do the two belong together?",
            beside, files()[f]->path());
    }
    if (with != 0 && with != files().size())
      fail<InputError>("{}: only {} of its {} files have a file of queries beside them", path(), with,
                       files().size());
  }

  int64_t first_index_ = 0, last_index_ = -1;
  bool whole_labels_ = true, has_queries_ = false, dense_ = true;
  std::vector<int64_t> query_ends_;
};

/// Columns are label (integer or real), features (an array) or indices and values (arrays of one length,
/// indices growing, from 0), and query (integer). Indices are written from 1; zeros of features are left out.
/// Queries that are numbered from 0 in the order of the rows go into PATH.query, line by line their number of
/// rows; any others become qid:Q in their rows.
class LibSvmWriter final : public DatasetWriter {
 public:
  LibSvmWriter(const std::string& path, const std::vector<Column>& columns)
      : path_(path), spool_(TemporaryFile::beside(path)) {
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto& [name, kind] = columns[c];
      const bool integer = kind == ColumnKind::integer, array = kind == ColumnKind::array;
      int* place = name == "label" && (integer || kind == ColumnKind::real) ? &label_
                   : name == "query" && integer                             ? &query_
                   : name == "indices" && array                             ? &indices_
                   : name == "values" && array                              ? &values_
                   : array                                                  ? &features_
                                                                            : nullptr;
      if (!place || *place >= 0)
        fail<InputError>(
            "{}: LIBSVM holds a label, features (or indices and values) and a query; it has no place for the "
            "column '{}' ({}); choose with --columns",
            path, name, kind_name(kind));
      *place = static_cast<int>(c);
    }
    const bool sparse = indices_ >= 0 && values_ >= 0 && features_ < 0;
    const bool dense = features_ >= 0 && indices_ < 0 && values_ < 0;
    if (label_ < 0 || (!sparse && !dense))
      fail<InputError>("{}: LIBSVM needs a label, and features or both indices and values", path);
  }

  void add(std::span<const Value> values) override {
    std::string row = label_text(values[static_cast<size_t>(label_)]);
    const size_t label_size = row.size();
    if (features_ >= 0) {
      const Array& features = array(values[static_cast<size_t>(features_)]);
      for (int64_t i = 0; i < features.count(); ++i) {
        // The last one says how many there are, which no other row may.
        const bool last = rows_.empty() && i + 1 == features.count();
        if (features.at(i) != 0 || last) put(row, i, features.at(i));
      }
    } else {
      const Array &indices = array(values[static_cast<size_t>(indices_)]),
                  &numbers = array(values[static_cast<size_t>(values_)]);
      if (indices.count() != numbers.count())
        fail<InputError>("{}: sample {} has {} indices and {} values", path_, rows_.size(), indices.count(),
                         numbers.count());
      for (int64_t i = 0; i < indices.count(); ++i) {
        if (indices.int_at(i) < 0 || indices.int_at(i) >= INT32_MAX ||
            (i > 0 && indices.int_at(i) <= indices.int_at(i - 1)))
          fail<InputError>("{}: sample {} has the index {}; they must grow, from 0", path_, rows_.size(),
                           indices.int_at(i));
        put(row, indices.int_at(i), numbers.at(i));
      }
    }
    rows_.push_back({static_cast<uint32_t>(label_size), row.size()});
    if (query_ >= 0) {
      const auto* query = std::get_if<int64_t>(&values[static_cast<size_t>(query_)]);
      if (!query) fail<InputError>("{}: sample {} has no query", path_, rows_.size() - 1);
      queries_.push_back(*query);
    }
    spool_.add(row.data(), row.size());
  }

  void finish() override {
    if (rows_.empty()) fail<InputError>("{}: there are no samples to write", path_);
    const std::vector<int64_t> sizes = query_sizes();
    AtomicFile file(path_);
    const Bytes data = spool_.map();
    std::string row;
    size_t at = 0;
    for (size_t i = 0; i < rows_.size(); at += rows_[i++].size) {
      row = data.text().substr(at, rows_[i].size);
      if (sizes.empty() && query_ >= 0) row.insert(rows_[i].label, fmt::format(" qid:{}", queries_[i]));
      file.write(row);
      file.write("\n");
    }
    std::string beside;
    for (const int64_t size : sizes) beside += fmt::format("{}\n", size);
    const std::string beside_path = queries_beside(path_);
    if (!beside.empty()) write_file(beside_path, beside);
    file.commit();
    // That of a file that was here before would be read as this one's.
    std::error_code ignored;
    if (beside.empty()) std::filesystem::remove(beside_path, ignored);
  }

 private:
  struct Written {
    uint32_t label;
    uint64_t size;
  };

  /// Rows of each query where they are 0, 1, 2 … in order; else empty.
  std::vector<int64_t> query_sizes() const {
    std::vector<int64_t> sizes;
    for (const int64_t query : queries_) {
      if (query == static_cast<int64_t>(sizes.size())) sizes.push_back(0);
      if (query != static_cast<int64_t>(sizes.size()) - 1) return {};
      ++sizes.back();
    }
    return sizes;
  }

  std::string label_text(const Value& value) const {
    if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
    const auto* real = std::get_if<double>(&value);
    if (!real || !std::isfinite(*real))
      fail<InputError>("{}: sample {} has no label that is a finite number", path_, rows_.size());
    return fmt::format("{}", *real);
  }
  const Array& array(const Value& value) const {
    const auto* found = std::get_if<Array>(&value);
    if (!found) fail<InputError>("{}: sample {} lacks its features", path_, rows_.size());
    return *found;
  }
  void put(std::string& row, int64_t index, double value) const {
    if (!std::isfinite(value))
      fail<InputError>("{}: sample {}: feature {} is no finite number", path_, rows_.size(), index);
    row += fmt::format(" {}:{}", index + 1, static_cast<float>(value));
  }

  std::string path_;
  TemporaryFile spool_;  // the rows, until it is known where their queries go
  int label_ = -1, features_ = -1, indices_ = -1, values_ = -1, query_ = -1;
  std::vector<Written> rows_;
  std::vector<int64_t> queries_;
};

/// Rows in the head, of which one at least has a feature.
bool matches_libsvm(std::string_view, std::span<const uint8_t> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const bool cut = head.size() >= 4096;
  bool feature = false;
  Row row;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (end == std::string_view::npos && cut) {
      // Without its last word, which may be cut as well.
      const size_t space = line.rfind(' ');
      if (space == std::string_view::npos) break;
      line = line.substr(0, space);
    }
    if (!has_row(line)) continue;
    if (!parse_row(line, row).empty()) return false;
    feature |= !row.indices.empty();
  }
  return feature;
}

}  // namespace

MILLRACE_FORMAT(libsvm){.name = "libsvm",
                        .doc = "LIBSVM or SVMlight",
                        .place = 100,
                        .matches = matches_libsvm,
                        .open = open_as<LibSvm>,
                        .create = create_as<LibSvmWriter>,
                        .beside = queries_beside};

}  // namespace millrace::data
