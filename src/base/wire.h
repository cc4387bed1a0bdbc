// Protocol Buffers' wire format (protobuf.dev, "Encoding"), by hand: enough for messages that we only write,
// and for reading without copies.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace millrace {

/// Builds one message. Fields are written in the order of the calls; a nested message is a WireWriter of its
/// own.
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
  /// A number of a packed list, whose text is the content of a field.
  void raw_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(value | 0x80));
    text_.push_back(static_cast<char>(value));
  }

  const std::string& text() const { return text_; }

 private:
  void key(int field, int wire_type) { raw_varint(static_cast<uint64_t>(field) << 3 | wire_type); }
  WireWriter& fixed(int field, int wire_type, const void* value, size_t size) {
    key(field, wire_type);
    text_.append(static_cast<const char*>(value), size);  // little-endian, as the host is
    return *this;
  }

  std::string text_;
};

/// Walks over the fields of one message. Lengths are checked: what is handed out lies inside the message.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  /// Goes to the next field; false at the end and at bytes that are no message (then damaged() is true).
  bool next() {
    uint64_t key = 0;
    if (rest_.empty() || damaged_) return false;
    if (!varint(key) || key >> 3 == 0 || key >> 32 != 0) return damage();
    field_ = static_cast<int>(key >> 3);
    type_ = static_cast<int>(key & 7);
    switch (type_) {
      case 0:
        return varint(number_) || damage();
      case 1:
        return take(8);
      case 2:
        return varint(number_) ? take(number_) : damage();
      case 5:
        return take(4);
      default:  // groups went out of use before proto3
        return damage();
    }
  }
  bool damaged() const { return damaged_; }

  int field() const { return field_; }
  /// 0: varint, 1: eight bytes, 2: counted bytes, 5: four bytes.
  int type() const { return type_; }
  /// The value of a varint.
  uint64_t number() const { return number_; }
  /// The bytes of any other field.
  std::string_view bytes() const { return bytes_; }

  /// Takes a varint off the front of `text`: false when it is cut off or over 64 bits.
  static bool varint(std::string_view& text, uint64_t& value) {
    value = 0;
    for (int i = 0; i < 10 && static_cast<size_t>(i) < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[static_cast<size_t>(i)]);
      value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        text.remove_prefix(static_cast<size_t>(i) + 1);
        return true;
      }
    }
    return false;
  }

 private:
  bool varint(uint64_t& value) { return varint(rest_, value); }
  bool take(uint64_t size) {
    if (size > rest_.size()) return damage();
    bytes_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool damage() {
    damaged_ = true;
    return false;
  }

  std::string_view rest_, bytes_;
  uint64_t number_ = 0;
  int field_ = 0, type_ = 0;
  bool damaged_ = false;
};

}  // namespace millrace
