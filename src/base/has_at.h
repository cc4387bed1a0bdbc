// The marks by which the kinds of files are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace millrace {

/// Whether `mark` stands at that place. One with a zero in it needs its size: {"II*\0", 4}.
inline bool has_at(std::span<const uint8_t> bytes, size_t at, std::string_view mark) {
  return bytes.size() >= at + mark.size() && std::memcmp(bytes.data() + at, mark.data(), mark.size()) == 0;
}

}  // namespace millrace
