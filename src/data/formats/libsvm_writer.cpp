#include "data/formats/libsvm_writer.h"

#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "data/formats/write_spool.h"

namespace millrace::data {
namespace {

class LibSvmWriter final : public DatasetWriter {
 public:
  LibSvmWriter(const std::string& path, const std::vector<Column>& columns) : path_(path), spool_(path) {
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
    spool_.write(row.data(), row.size());
  }

  void finish() override {
    if (rows_.empty()) fail<InputError>("{}: there are no samples to write", path_);
    const std::vector<int64_t> sizes = query_sizes();
    AtomicFile file(path_);
    spool_.rewind();
    std::string row;
    for (size_t i = 0; i < rows_.size(); ++i) {
      row.resize(rows_[i].size);
      spool_.read(row.data(), row.size());
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
  struct Row {
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
  WriteSpool spool_;
  int label_ = -1, features_ = -1, indices_ = -1, values_ = -1, query_ = -1;
  std::vector<Row> rows_;
  std::vector<int64_t> queries_;
};

}  // namespace

std::string queries_beside(const std::string& path) { return path + ".query"; }

std::unique_ptr<DatasetWriter> create_libsvm(const std::string& path, const std::vector<Column>& columns) {
  return std::make_unique<LibSvmWriter>(path, columns);
}

}  // namespace millrace::data
