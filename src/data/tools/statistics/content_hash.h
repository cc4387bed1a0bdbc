// Which bytes are the same.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace millrace::data {

/// FNV-1a (Fowler, Noll, Vo), eight bytes at a time.
inline uint64_t content_hash(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xcbf29ce484222325 ^ bytes.size();
  size_t at = 0;
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
  };
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, &bytes[at], 8);
    mix(word);
  }
  for (; at < bytes.size(); ++at) mix(bytes[at]);
  return hash;
}

}  // namespace millrace::data
