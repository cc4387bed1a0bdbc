#include <deque>

#include "base/file.h"
#include "base/format.h"
#include "data/formats/arrow_load.h"
#include "data/formats/arrow_table.h"
#include "data/formats/content.h"

namespace millrace::data {
namespace {

constexpr size_t most_buffered_rows = 65'536, most_buffered_bytes = size_t{64} << 20,
                 most_value = size_t{1} << 30;

class ModuleOutput final : public arrow_module::Output {
 public:
  explicit ModuleOutput(const std::string& path) : file_(path) {}
  bool write(const void* data, size_t size) noexcept override {
    try {
      file_.write(data, size);
      return true;
    } catch (...) {
      error_ = std::current_exception();
      return false;
    }
  }
  std::exception_ptr error() const { return error_; }
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
  std::exception_ptr error_;
};

class ArrowTableWriter final : public DatasetWriter {
 public:
  ArrowTableWriter(arrow_module::FileKind kind, const std::string& path, const std::vector<Column>& columns)
      : path_(path),
        columns_(columns),
        output_(std::make_shared<ModuleOutput>(path)),
        elements_(columns.size()) {
    writer_ = load_arrow().create(kind, columns, output_);
    start();
  }

  void add(std::span<const Value> values) override {
    for (size_t c = 0; c < columns_.size(); ++c) add_value(values[c], c);
    ++rows_;
    ++count_;
    if (rows_ >= most_buffered_rows || bytes_ >= most_buffered_bytes) flush();
  }

  void finish() override {
    if (rows_ > 0 || count_ == 0) flush();
    guarded([&] { writer_->finish(); });
    output_->commit();
  }

 private:
  void start() {
    batch_.assign(columns_.size(), {});
    for (size_t c = 0; c < columns_.size(); ++c) {
      batch_[c].kind = columns_[c].kind;
      batch_[c].element = elements_[c].value_or(f32);
    }
    kept_.clear();
    rows_ = bytes_ = 0;
  }

  template <typename Body>
  void guarded(Body&& body) {
    try {
      body();
    } catch (const std::exception& error) {
      if (output_->error()) std::rethrow_exception(output_->error());
      fail<InputError>("{}: cannot be written: {}", path_, error.what());
    }
  }

  void flush() {
    for (size_t c = 0; c < columns_.size(); ++c) batch_[c].element = elements_[c].value_or(f32);
    guarded([&] { writer_->write(batch_); });
    // The type of lists stands in the file from now on.
    for (size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].kind == ColumnKind::array) elements_[c] = batch_[c].element;
    start();
  }

  [[noreturn]] void refuse(size_t c, const std::string& why) const {
    fail<InputError>("{}: sample {}: the column '{}' {}", path_, count_, columns_[c].name, why);
  }

  void content(ColumnValues& to, std::string_view bytes, size_t c) {
    if (bytes.size() > most_value)
      refuse(c, fmt::format("has a value of {} bytes; 1 GB is the most", bytes.size()));
    to.contents.push_back(kept_.emplace_back(bytes));
    bytes_ += bytes.size();
  }

  void add_value(const Value& value, size_t c) {
    ColumnValues& to = batch_[c];
    bytes_ += 8;
    const bool missing = std::holds_alternative<std::monostate>(value);
    if (missing && to.present.empty()) to.present.assign(rows_, 1);
    if (missing || !to.present.empty()) to.present.push_back(!missing);
    switch (to.kind) {
      case ColumnKind::integer:
        to.integers.push_back(missing ? 0 : std::get<int64_t>(value));
        return;
      case ColumnKind::real:
        to.reals.push_back(missing ? 0 : std::get<double>(value));
        return;
      default:
        break;
    }
    if (missing) {
      to.contents.emplace_back();
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      if (!is_utf8(*text)) refuse(c, "has a text that is not UTF-8; convert the source first (iconv)");
      content(to, *text, c);
    } else if (const auto* bytes = std::get_if<Bytes>(&value)) {
      content(to, bytes->text(), c);
    } else if (const auto* array = std::get_if<Array>(&value)) {
      add_array(to, *array, c);
    } else {
      refuse(c, "is a decoded picture; only encoded ones can be held");
    }
  }

  void add_array(ColumnValues& to, const Array& array, size_t c) {
    if (array.shape().size() != 1)
      refuse(c, fmt::format("is {}; lists hold arrays of rank 1 only: leave it out with --columns",
                            array.type().str()));
    const DType type = array.dtype();
    const DType stored = type == f16 || type == bf16 ? f32 : type == boolean ? u8 : type;
    if (!elements_[c]) elements_[c] = stored;
    if (*elements_[c] != stored)
      refuse(c, fmt::format("has numbers of type {}, the first sample's are {}", type.name(),
                            elements_[c]->name()));
    const Array numbers = stored == type ? array : array.converted(stored);
    content(to, {static_cast<const char*>(numbers.data()), static_cast<size_t>(numbers.bytes())}, c);
  }

  std::string path_;
  std::vector<Column> columns_;
  std::shared_ptr<ModuleOutput> output_;
  std::unique_ptr<arrow_module::Writer> writer_;
  std::vector<ColumnValues> batch_;
  std::deque<std::string> kept_;
  std::vector<std::optional<DType>> elements_;
  size_t rows_ = 0, bytes_ = 0;
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<DatasetWriter> create_arrow_table(arrow_module::FileKind kind, const std::string& path,
                                                  const std::vector<Column>& columns) {
  return std::make_unique<ArrowTableWriter>(kind, path, columns);
}

}  // namespace millrace::data
