#include "data/formats/arrow/adaptors.h"

namespace millrace::data::arrow_module {
namespace {

class File final : public arrow::io::RandomAccessFile {
 public:
  explicit File(std::shared_ptr<Input> input) : input_(std::move(input)) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  bool supports_zero_copy() const override { return true; }
  arrow::Result<int64_t> GetSize() override { return static_cast<int64_t>(input_->size()); }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Seek(int64_t position) override {
    if (position < 0) return arrow::Status::Invalid("a position before the beginning");
    position_ = position;
    return arrow::Status::OK();
  }

  arrow::Result<int64_t> ReadAt(int64_t position, int64_t size, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const auto buffer, ReadAt(position, size));
    if (buffer->size() > 0) std::memcpy(out, buffer->data(), static_cast<size_t>(buffer->size()));
    return buffer->size();
  }
  /// As far as the file goes.
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t size) override {
    const auto all = static_cast<int64_t>(input_->size());
    if (position < 0 || size < 0) return arrow::Status::Invalid("a size or position below zero");
    size = position >= all ? 0 : std::min(size, all - position);
    if (size == 0) return std::make_shared<arrow::Buffer>(nullptr, 0);
    auto bytes = std::make_shared<Bytes>();
    if (!input_->read(static_cast<uint64_t>(position), static_cast<uint64_t>(size), *bytes))
      return arrow::Status::IOError("the file cannot be read");
    const uint8_t* data = bytes->data();
    return std::shared_ptr<arrow::Buffer>(new arrow::Buffer(data, size),
                                          [bytes](arrow::Buffer* buffer) { delete buffer; });
  }
  arrow::Result<int64_t> Read(int64_t size, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t read, ReadAt(position_, size, out));
    position_ += read;
    return read;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, size));
    position_ += buffer->size();
    return buffer;
  }

 private:
  using arrow::io::RandomAccessFile::ReadAt;
  std::shared_ptr<Input> input_;
  int64_t position_ = 0;
  bool closed_ = false;
};

std::unique_ptr<Reader> open(FileKind kind, std::shared_ptr<Input> input) {
  switch (kind) {
    case FileKind::parquet:
      return open_parquet(std::move(input));
    case FileKind::ipc_file:
      return open_ipc_file(std::move(input));
    default:
      return open_ipc_stream(std::move(input));
  }
}

constexpr Module module{open, create_writer};

}  // namespace

void fail_with(const arrow::Status& status) {
  std::string message = status.message();
  // Further lines say where in Arrow's code.
  message.resize(std::min(message.find('\n'), message.size()));
  throw std::runtime_error(message.substr(0, 500));
}

std::shared_ptr<arrow::io::RandomAccessFile> arrow_file(std::shared_ptr<Input> input) {
  return std::make_shared<File>(std::move(input));
}

std::vector<int> usable_columns(const arrow::Schema& schema, Reader& reader) {
  std::vector<int> places;
  for (int c = 0; c < schema.num_fields(); ++c) {
    const auto& field = schema.field(c);
    ColumnKind kind{};
    if (kind_of(*field->type(), kind)) {
      reader.columns.push_back({field->name(), kind});
      places.push_back(c);
    } else {
      std::string type = field->type()->ToString();
      if (type.size() > 80) type = type.substr(0, 80) + " …";
      reader.refused.push_back("'" + field->name() + "' (" + type + ")");
    }
  }
  return places;
}

}  // namespace millrace::data::arrow_module

extern "C" __attribute__((visibility("default"))) const millrace::data::arrow_module::Module*
millrace_arrow_module() {
  return &millrace::data::arrow_module::module;
}
