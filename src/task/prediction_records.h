// What a journal of predictions keeps of each sample.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

#include "base/format.h"

namespace millrace::task {

class RecordWriter {
 public:
  template <typename T>
  void number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number(static_cast<uint64_t>(value.size()));
    text_ += value;
  }
  void value(const data::Value& value) {
    number(static_cast<uint8_t>(value.index()));
    if (const auto* integer = std::get_if<int64_t>(&value)) number(*integer);
    if (const auto* real = std::get_if<double>(&value)) number(*real);
    if (const auto* own = std::get_if<std::string>(&value)) text(*own);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Records are the journal's own, whose checksums are right.
class RecordReader {
 public:
  explicit RecordReader(std::string_view text) : rest_(text) {}
  template <typename T>
  T number() {
    T value{};
    const std::string_view bytes = take(sizeof value);
    bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<uint64_t>())); }
  data::Value value() {
    switch (number<uint8_t>()) {
      case 1:
        return number<int64_t>();
      case 2:
        return number<double>();
      case 3:
        return text();
      default:
        return {};
    }
  }

 private:
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) fail<InputError>("a record of the partial predictions is damaged");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest_;
};

/// What became of one sample.
struct RowRecord {
  int64_t sample = 0;
  std::string why;  // it is bad; else empty
  std::vector<data::Value> values;
  std::string name = {};  // where the number does not tell it
};
/// Of how rows are written, for a journal's identity.
constexpr int record_version = 2;

void write_rows(RecordWriter& to, const std::vector<RowRecord>& rows);
std::vector<RowRecord> read_rows(RecordReader& from);

}  // namespace millrace::task
