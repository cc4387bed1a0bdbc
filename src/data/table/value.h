// What samples hold: values in named, typed columns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <millrace/array.h>

namespace millrace::data {

/// Bytes and what keeps them alive: a view into a mapped file, or memory of their own. Copies share.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::span<const uint8_t> view, std::shared_ptr<const void> owner)
      : view_(view), owner_(std::move(owner)) {}
  explicit Bytes(std::vector<uint8_t> own) {
    auto memory = std::make_shared<const std::vector<uint8_t>>(std::move(own));
    view_ = *memory;
    owner_ = std::move(memory);
  }

  std::span<const uint8_t> view() const { return view_; }
  const uint8_t* data() const { return view_.data(); }
  size_t size() const { return view_.size(); }
  std::string_view text() const { return {reinterpret_cast<const char*>(view_.data()), view_.size()}; }
  /// A part that shares the memory; offset + size ≤ size().
  Bytes part(size_t offset, size_t size) const { return {view_.subspan(offset, size), owner_}; }

 private:
  std::span<const uint8_t> view_;
  std::shared_ptr<const void> owner_;
};

/// A picture that is stored decoded: height·width·channels bytes, channels together (HWC).
struct Pixels {
  int height = 0, width = 0, channels = 0;
  Bytes bytes;
};

enum class ColumnKind {
  integer,  // int64_t
  real,     // double
  text,     // std::string, UTF-8
  json,     // std::string
  bytes,    // Bytes
  picture,  // Bytes (an encoded file) or Pixels
  audio,    // Bytes (an encoded file)
  array,    // Array
};
const char* kind_name(ColumnKind kind);

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::bytes;
  bool operator==(const Column&) const = default;
};

/// A value of a column's kind; std::monostate where a sample has none.
using Value = std::variant<std::monostate, int64_t, double, std::string, Bytes, Pixels, Array>;

/// For people, on one line of at most about `width` characters: "7", "\"a text…\"", "picture 32x32 colour",
/// "888 bytes", "f32[2, 3] 0 1 2 …", "-" for a missing one.
std::string value_text(const Value& value, ColumnKind kind, size_t width = 60);

}  // namespace millrace::data
