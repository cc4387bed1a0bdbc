#include "task/prediction_writer.h"

#include <limits>
#include <utility>

#include <millrace/format.h>

#include "base/file.h"
#include "base/format.h"
#include "base/utf8.h"
#include "data/formats/formats.h"

namespace millrace::task {
namespace {

class TableWriter final : public PredictionWriter {
 public:
  TableWriter(const data::Format& format, const std::string& path, const std::vector<data::Column>& columns) {
    std::vector<data::Column> all = {{"sample", data::ColumnKind::integer},
                                     {"input", data::ColumnKind::text}};
    std::set<std::string> others;
    for (const data::Column& column : columns) others.insert(column.name);
    for (data::Column column : columns) {
      column.name = beside(column.name, {"sample", "input"}, others);
      all.push_back(std::move(column));
    }
    writer_ = format.create(path, all);
  }
  void add(const std::string& name, int64_t sample, std::span<const data::Value> values) override {
    if (values.empty()) return;
    row_.assign({data::Value(sample), data::Value(stored_text(name))});
    row_.insert(row_.end(), values.begin(), values.end());
    writer_->add(row_);
  }
  void finish() override { writer_->finish(); }

 private:
  std::unique_ptr<data::DatasetWriter> writer_;
  std::vector<data::Value> row_;
};

class ArrayWriter final : public PredictionWriter {
 public:
  ArrayWriter(const std::string& path, int64_t samples, int64_t width, bool half)
      : file_(path), row_(half ? f16 : f32, {1, width}) {
    const std::vector<uint8_t> head = header(samples, width);
    file_.write(head.data(), head.size());
  }
  void add(const std::string&, int64_t, std::span<const data::Value> values) override {
    for (int64_t i = 0; i < row_.count(); ++i)
      row_.set(i, values.empty() ? std::numeric_limits<double>::quiet_NaN()
                                 : std::get<double>(values[static_cast<size_t>(i)]));
    file_.write(std::as_const(row_).data(), static_cast<size_t>(row_.bytes()));
  }
  void finish() override { file_.commit(); }

 private:
  /// As numpy.save writes it before the elements.
  std::vector<uint8_t> header(int64_t samples, int64_t width) const {
    std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                   row_.dtype() == f16 ? "<f2" : "<f4", samples, width);
    dict.resize((10 + dict.size() + 1 + 63) / 64 * 64 - 10, ' ');
    dict.back() = '\n';
    std::vector<uint8_t> bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    bytes.push_back(static_cast<uint8_t>(dict.size() & 255));
    bytes.push_back(static_cast<uint8_t>(dict.size() >> 8));
    bytes.insert(bytes.end(), dict.begin(), dict.end());
    return bytes;
  }

  AtomicFile file_;
  Array row_;
};

}  // namespace

bool is_array_file(const std::string& path) { return path.ends_with(".npy"); }

std::string beside(const std::string& name, const std::set<std::string>& reserved,
                   const std::set<std::string>& others) {
  std::string free = name;
  for (int number = 2; reserved.contains(free) || (free != name && others.contains(free)); ++number)
    free = fmt::format("{}_{}", name, number);
  return free;
}

std::unique_ptr<PredictionWriter> prediction_writer(const std::string& path,
                                                    const std::vector<data::Column>& columns, int64_t samples,
                                                    int64_t width, bool half) {
  if (is_array_file(path)) return std::make_unique<ArrayWriter>(path, samples, width, half);
  const data::Format* const format = data::formats().find(data::format_by_ending(path));
  if (!format || !format->create)
    fail<InputError>("{}: predictions are written as .csv, .tsv, .jsonl, .parquet, .arrow or .npy", path);
  return std::make_unique<TableWriter>(*format, path, columns);
}

}  // namespace millrace::task
