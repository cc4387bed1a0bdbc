#include <mutex>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>

#include "data/formats/arrow/adaptors.h"

namespace millrace::data::arrow_module {
namespace {

void leaves(const parquet::arrow::SchemaField& field, std::vector<int>& list) {
  if (field.is_leaf()) list.push_back(field.column_index);
  for (const auto& child : field.children) leaves(child, list);
}

class ParquetReader final : public Reader {
 public:
  explicit ParquetReader(std::shared_ptr<Input> input) : file_(arrow_file(std::move(input))) {
    auto reader = make(nullptr);
    metadata_ = reader->parquet_reader()->metadata();
    std::shared_ptr<arrow::Schema> schema;
    check(reader->GetSchema(&schema));
    for (const int place : usable_columns(*schema, *this)) {
      leaves_.emplace_back();
      leaves(reader->manifest().schema_fields.at(static_cast<size_t>(place)), leaves_.back());
    }
    for (int g = 0; g < metadata_->num_row_groups(); ++g)
      batches.push_back(metadata_->RowGroup(g)->num_rows());
    free_.push_back(std::move(reader));
  }

  ColumnValues read(size_t batch, size_t column) override {
    // A reader serves one thread; their number is that of threads that ever read at once.
    std::unique_ptr<parquet::arrow::FileReader> reader;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        reader = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!reader) reader = make(metadata_);
    const auto table = take(reader->ReadRowGroup(static_cast<int>(batch), leaves_.at(column)));
    {
      const std::lock_guard lock(mutex_);
      free_.push_back(std::move(reader));
    }
    if (table->num_columns() != 1 || table->num_rows() != batches.at(batch))
      throw std::runtime_error("a row group has another number of rows than the file says");
    return values_of(*table->column(0));
  }

 private:
  std::unique_ptr<parquet::arrow::FileReader> make(std::shared_ptr<parquet::FileMetaData> metadata) {
    parquet::arrow::FileReaderBuilder builder;
    parquet::ReaderProperties reading = parquet::default_reader_properties();
    reading.set_page_checksum_verification(true);  // where there are any
    check(builder.Open(file_, reading, std::move(metadata)));
    parquet::ArrowReaderProperties properties(/*use_threads=*/false);
    properties.set_pre_buffer(false);
    builder.properties(properties);
    return take(builder.Build());
  }

  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::vector<std::vector<int>> leaves_;  // of each column
  std::mutex mutex_;
  std::vector<std::unique_ptr<parquet::arrow::FileReader>> free_;
};

}  // namespace

std::unique_ptr<Reader> open_parquet(std::shared_ptr<Input> input) {
  return std::make_unique<ParquetReader>(std::move(input));
}

}  // namespace millrace::data::arrow_module
