#include "data/feed/sequences/window_stream.h"

#include <cstring>

#include "base/format.h"

namespace millrace::data {
namespace {

class WindowStream final : public Stream {
 public:
  WindowStream(std::unique_ptr<Stream> texts, WindowOptions options)
      : Stream(texts->path()), texts_(std::move(texts)), options_(std::move(options)) {}

  bool next(StreamRecord& record) override {
    const auto size = static_cast<size_t>(options_.length + options_.behind);
    while (ids_.size() - begin_ < size) {
      ids_.erase(ids_.begin(), ids_.begin() + static_cast<int64_t>(begin_));
      begin_ = 0;
      if (!texts_->next(record)) return false;
      if (record.fault.empty()) record.fault = append(record);
      if (record.fault.empty()) continue;
      record.at = {number_++, 0, 0};
      return true;
    }
    std::vector<uint8_t> bytes(size * sizeof ids_[0]);
    std::memcpy(bytes.data(), ids_.data() + begin_, bytes.size());
    begin_ += static_cast<size_t>(options_.length);
    record = {{number_++, 0, 0}, Bytes(std::move(bytes)), {}};
    return true;
  }

  void seek(const StreamPlace& /*place*/) override {
    texts_->seek({});
    ids_.clear();
    begin_ = 0;
    number_ = 0;
  }
  void stop() override { texts_->stop(); }
  void set_room(SampleRoom room) override { texts_->set_room(std::move(room)); }

  std::unique_ptr<Dataset> samples(std::span<const StreamRecord> records) const override {
    std::vector<std::vector<Value>> rows;
    for (const StreamRecord& record : records) rows.push_back({record.bytes});
    return memory_dataset(path(), {{column_, ColumnKind::bytes}}, std::move(rows));
  }
  const std::string& format() const override { return texts_->format(); }

 private:
  /// The tokens of a text; "" or why there are none.
  std::string append(const StreamRecord& record) {
    try {
      const auto sample = texts_->samples({&record, 1});
      if (column_.empty()) column_ = options_.column(*sample);
      const Value value = sample->read(0, sample->column(column_));
      const auto* const text = std::get_if<std::string>(&value);
      if (!text) return fmt::format("its '{}' is no text", column_);
      options_.tokenizer->encode(*text + options_.separator, false, ids_);
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  }

  std::unique_ptr<Stream> texts_;
  WindowOptions options_;
  std::string column_;
  std::vector<int32_t> ids_;  // from `begin_` on in no window yet
  size_t begin_ = 0;
  int64_t number_ = 0;
};

}  // namespace

std::unique_ptr<Stream> window_stream(std::unique_ptr<Stream> texts, WindowOptions options) {
  return std::make_unique<WindowStream>(std::move(texts), std::move(options));
}

}  // namespace millrace::data
