// Protocol Buffers' wire format (protobuf.dev, "Encoding"), written by hand: enough for messages that we only write.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace millrace {

/// Builds one message. Fields are written in the order of the calls; a nested message is a WireWriter of its own.
class WireWriter {
 public:
  WireWriter& varint(int field, uint64_t value) {
    key(field, 0);
    raw_varint(value);
    return *this;
  }
  /// int32 and int64: negative numbers take ten bytes.
  WireWriter& integer(int field, int64_t value) { return varint(field, static_cast<uint64_t>(value)); }
  WireWriter& number(int field, double value) { return fixed(field, 1, &value, sizeof value); }
  WireWriter& number(int field, float value) { return fixed(field, 5, &value, sizeof value); }
  WireWriter& bytes(int field, std::string_view value) {
    key(field, 2);
    raw_varint(value.size());
    text_.append(value);
    return *this;
  }
  WireWriter& message(int field, const WireWriter& value) { return bytes(field, value.text_); }

  /// The fields of another message, appended to this one.
  WireWriter& raw(const WireWriter& fields) {
    text_.append(fields.text_);
    return *this;
  }

  const std::string& text() const { return text_; }

 private:
  void key(int field, int wire_type) { raw_varint(static_cast<uint64_t>(field) << 3 | wire_type); }
  void raw_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(value | 0x80));
    text_.push_back(static_cast<char>(value));
  }
  WireWriter& fixed(int field, int wire_type, const void* value, size_t size) {
    key(field, wire_type);
    text_.append(static_cast<const char*>(value), size);  // little-endian, as the host is
    return *this;
  }

  std::string text_;
};

}  // namespace millrace
