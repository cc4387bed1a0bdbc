#include <arrow/ipc/writer.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "data/formats/arrow/adaptors.h"

namespace millrace::data::arrow_module {
namespace {

class Stream final : public arrow::io::OutputStream {
 public:
  explicit Stream(std::shared_ptr<Output> output) : output_(std::move(output)) {}
  arrow::Status Write(const void* data, int64_t size) override {
    if (!output_->write(data, static_cast<size_t>(size)))
      return arrow::Status::IOError("the file cannot be written");
    position_ += size;
    return arrow::Status::OK();
  }
  using arrow::io::OutputStream::Write;
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

 private:
  std::shared_ptr<Output> output_;
  int64_t position_ = 0;
  bool closed_ = false;
};

std::shared_ptr<arrow::DataType> number_type(DType element) {
  if (element == i8) return arrow::int8();
  if (element == u8) return arrow::uint8();
  if (element == i32) return arrow::int32();
  if (element == i64) return arrow::int64();
  return element == f64 ? arrow::float64() : arrow::float32();
}

std::shared_ptr<arrow::DataType> type_of(const ColumnValues& values) {
  switch (values.kind) {
    case ColumnKind::integer:
      return arrow::int64();
    case ColumnKind::real:
      return arrow::float64();
    case ColumnKind::text:
    case ColumnKind::json:
      return arrow::utf8();
    case ColumnKind::array:
      return arrow::list(arrow::field("item", number_type(values.element)));
    default:
      return arrow::binary();
  }
}

std::shared_ptr<arrow::Array> array_of(const ColumnValues& values) {
  const auto build = [&](auto& builder, auto&& append) {
    check(builder.Reserve(static_cast<int64_t>(values.size())));
    for (size_t i = 0; i < values.size(); ++i) check(values.has(i) ? append(i) : builder.AppendNull());
    return take(builder.Finish());
  };
  switch (values.kind) {
    case ColumnKind::integer: {
      arrow::Int64Builder builder;
      return build(builder, [&](size_t i) { return builder.Append(values.integers[i]); });
    }
    case ColumnKind::real: {
      arrow::DoubleBuilder builder;
      return build(builder, [&](size_t i) { return builder.Append(values.reals[i]); });
    }
    case ColumnKind::array: {
      std::string elements;
      arrow::Int32Builder offsets;
      const auto width = static_cast<size_t>(values.element.bytes());
      for (size_t i = 0; i < values.size(); ++i) {
        const auto begin = static_cast<int32_t>(elements.size() / width);
        check(values.has(i) ? offsets.Append(begin) : offsets.AppendNull());
        if (values.has(i)) elements += values.contents[i];
        if (elements.size() / width > INT32_MAX)
          throw std::runtime_error("lists of more than 2^31 numbers together");
      }
      const auto count = static_cast<int64_t>(elements.size() / width);
      check(offsets.Append(static_cast<int32_t>(count)));
      const auto numbers = arrow::MakeArray(arrow::ArrayData::Make(
          number_type(values.element), count, {nullptr, arrow::Buffer::FromString(std::move(elements))}, 0));
      return take(arrow::ListArray::FromArrays(*take(offsets.Finish()), *numbers));
    }
    case ColumnKind::text:
    case ColumnKind::json: {
      arrow::StringBuilder builder;
      return build(builder, [&](size_t i) { return builder.Append(values.contents[i]); });
    }
    default: {
      arrow::BinaryBuilder builder;
      return build(builder, [&](size_t i) { return builder.Append(values.contents[i]); });
    }
  }
}

class TableFileWriter final : public Writer {
 public:
  TableFileWriter(FileKind kind, const std::vector<Column>& columns, std::shared_ptr<Output> output)
      : kind_(kind), columns_(columns), stream_(std::make_shared<Stream>(std::move(output))) {}

  void write(std::span<const ColumnValues> values) override {
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    for (const ColumnValues& each : values) arrays.push_back(array_of(each));
    if (!schema_) begin(values);
    const int64_t rows = arrays.empty() ? 0 : arrays[0]->length();
    const auto batch = arrow::RecordBatch::Make(schema_, rows, std::move(arrays));
    check(batch->Validate());
    if (parquet_) {
      const auto table = take(arrow::Table::FromRecordBatches({batch}));
      check(parquet_->WriteTable(*table, std::max<int64_t>(table->num_rows(), 1)));
    } else {
      check(ipc_->WriteRecordBatch(*batch));
    }
  }

  void finish() override {
    if (parquet_) check(parquet_->Close());
    if (ipc_) check(ipc_->Close());
  }

 private:
  /// The element types of arrays are known with the first batch.
  void begin(std::span<const ColumnValues> values) {
    arrow::FieldVector fields;
    for (size_t c = 0; c < columns_.size(); ++c)
      fields.push_back(arrow::field(columns_[c].name, type_of(values[c])));
    schema_ = arrow::schema(fields);
    if (kind_ == FileKind::parquet) {
      parquet::WriterProperties::Builder properties;
      properties.compression(parquet::Compression::ZSTD);
      properties.enable_page_checksum();
      parquet_ = take(parquet::arrow::FileWriter::Open(
          *schema_, arrow::default_memory_pool(), stream_, properties.build(),
          parquet::ArrowWriterProperties::Builder().store_schema()->build()));
    } else if (kind_ == FileKind::ipc_file) {
      ipc_ = take(arrow::ipc::MakeFileWriter(stream_, schema_));
    } else {
      ipc_ = take(arrow::ipc::MakeStreamWriter(stream_, schema_));
    }
  }

  FileKind kind_;
  std::vector<Column> columns_;
  std::shared_ptr<Stream> stream_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<parquet::arrow::FileWriter> parquet_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> ipc_;
};

}  // namespace

std::unique_ptr<Writer> create_writer(FileKind kind, const std::vector<Column>& columns,
                                      std::shared_ptr<Output> output) {
  return std::make_unique<TableFileWriter>(kind, columns, std::move(output));
}

}  // namespace millrace::data::arrow_module
