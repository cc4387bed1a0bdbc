#include <arrow/ipc/options.h>
#include <arrow/ipc/reader.h>
#include <arrow/util/byte_size.h>
#include <mutex>

#include "data/formats/arrow/adaptors.h"

namespace millrace::data::arrow_module {
namespace {

// Batches of a stream stay open; what had to be unpacked for that takes memory.
constexpr int64_t most_unpacked = int64_t{4} << 30;

arrow::ipc::IpcReadOptions options(std::vector<int> fields) {
  auto made = arrow::ipc::IpcReadOptions::Defaults();
  made.use_threads = false;
  made.included_fields = std::move(fields);
  made.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  return made;
}

using FileReader = arrow::ipc::RecordBatchFileReader;

class IpcFile final : public Reader {
 public:
  explicit IpcFile(std::shared_ptr<Input> input) : file_(arrow_file(std::move(input))) {
    const auto reader = take(FileReader::Open(file_.get(), options({})));
    const auto& schema = *reader->schema();
    places_ = usable_columns(schema, *this);
    readers_.resize(places_.size());
    // The sizes of batches stand only in the batches: read is the column that costs least.
    int cheapest = 0;
    for (int c = schema.num_fields() - 1; c >= 0; --c)
      if (arrow::is_fixed_width(schema.field(c)->type()->id())) cheapest = c;
    const auto sizes =
        schema.num_fields() > 0 ? take(FileReader::Open(file_.get(), options({cheapest}))) : reader;
    for (int b = 0; b < reader->num_record_batches(); ++b)
      batches.push_back(take(sizes->ReadRecordBatch(b))->num_rows());
  }

  ColumnValues read(size_t batch, size_t column) override {
    std::shared_ptr<arrow::RecordBatch> read;
    {
      const std::lock_guard lock(mutex_);
      auto& reader = readers_.at(column);
      if (!reader) reader = take(FileReader::Open(file_.get(), options({places_.at(column)})));
      read = take(reader->ReadRecordBatch(static_cast<int>(batch)));
    }
    if (read->num_columns() != 1 || read->num_rows() != batches.at(batch))
      throw std::runtime_error("a batch has another number of rows than before");
    return values_of(arrow::ChunkedArray(read->column(0)));
  }

 private:
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  std::vector<int> places_;  // of each column in the schema
  std::mutex mutex_;
  std::vector<std::shared_ptr<FileReader>> readers_;  // of each column
};

class IpcStream final : public Reader {
 public:
  explicit IpcStream(std::shared_ptr<Input> input) : file_(arrow_file(std::move(input))) {
    const auto reader = take(arrow::ipc::RecordBatchStreamReader::Open(file_, options({})));
    places_ = usable_columns(*reader->schema(), *this);
    const int64_t before = arrow::default_memory_pool()->bytes_allocated();
    while (true) {
      std::shared_ptr<arrow::RecordBatch> batch;
      check(reader->ReadNext(&batch));
      if (!batch) break;
      batches.push_back(batch->num_rows());
      read_.push_back(std::move(batch));
      if (arrow::default_memory_pool()->bytes_allocated() - before > most_unpacked)
        throw std::runtime_error(
            "the compressed stream takes more than 4 GB of memory; write it as an Arrow file (Feather) or "
            "Parquet");
    }
  }

  ColumnValues read(size_t batch, size_t column) override {
    return values_of(arrow::ChunkedArray(read_.at(batch)->column(places_.at(column))));
  }

 private:
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  std::vector<int> places_;
  std::vector<std::shared_ptr<arrow::RecordBatch>> read_;
};

}  // namespace

std::unique_ptr<Reader> open_ipc_file(std::shared_ptr<Input> input) {
  return std::make_unique<IpcFile>(std::move(input));
}
std::unique_ptr<Reader> open_ipc_stream(std::shared_ptr<Input> input) {
  return std::make_unique<IpcStream>(std::move(input));
}

}  // namespace millrace::data::arrow_module
