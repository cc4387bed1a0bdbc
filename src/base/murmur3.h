// MurmurHash3_x86_32 (A. Appleby, public domain): the hash that scikit-learn's, Spark's and others' hashed
// features go by.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace millrace {

inline uint32_t murmur3_32(std::string_view text, uint32_t seed = 0) {
  constexpr uint32_t c1 = 0xcc9e2d51, c2 = 0x1b873593;
  const auto mixed = [](uint32_t k) { return std::rotl(k * c1, 15) * c2; };
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  uint32_t hash = seed;
  const size_t whole = text.size() / 4 * 4;
  for (size_t i = 0; i < whole; i += 4) {
    hash ^= mixed(byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24);
    hash = std::rotl(hash, 13) * 5 + 0xe6546b64;
  }
  uint32_t rest = 0;
  for (size_t i = text.size(); i-- > whole;) rest = rest << 8 | byte(i);
  if (text.size() > whole) hash ^= mixed(rest);
  hash ^= static_cast<uint32_t>(text.size());
  hash = (hash ^ hash >> 16) * 0x85ebca6b;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35;
  return hash ^ hash >> 16;
}

}  // namespace millrace
