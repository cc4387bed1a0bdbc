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

#include "data/codecs/pictures/stored_picture.h"
#include "data/io/bytes.h"

namespace millrace::data {

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

/// A value of a column of pictures; empty where there is none. It shares the value's memory.
StoredPicture stored_picture(const Value& value);

/// For people, on one line of at most about `width` characters: "7", "\"a text…\"", "picture 32x32 colour",
/// "888 bytes", "f32[2, 3] 0 1 2 …", "-" for a missing one.
std::string value_text(const Value& value, ColumnKind kind, size_t width = 60);

}  // namespace millrace::data
