// Short hashes; not against attackers.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

/// FNV-1a (Fowler, Noll, Vo), 64 bits.
constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014).
constexpr uint64_t mixed_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace millrace
