// What a picture looks like in 64 bits: alike pictures have hashes that differ in few bits.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "data/codecs/pictures/picture.h"

namespace millrace::data {

struct Likeness {
  /// Signs of the lowest 8×8 frequencies of the picture in grey at 32×32, against their median (pHash:
  /// Zauner, "Implementation and benchmarking of perceptual image hash functions", 2010).
  uint64_t hash = 0;
  /// The picture in grey at 8×8, which tells apart flat pictures whose hashes happen to agree.
  std::array<uint8_t, 64> thumbnail{};
};
Likeness likeness(const Picture& picture);

/// Bits in which two hashes differ: 0 to 64.
inline int distance(uint64_t a, uint64_t b) { return std::popcount(a ^ b); }

}  // namespace millrace::data
