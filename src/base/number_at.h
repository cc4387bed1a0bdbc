// Numbers as files have them: little-endian, at any place.
#pragma once

#include <cstdint>
#include <cstring>

namespace millrace {

template <typename T>
T number_at(const uint8_t* bytes) {
  T value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace millrace
