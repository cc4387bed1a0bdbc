// What a picture looks like in 64 bits: alike pictures have hashes that differ in few bits.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>

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

/// Do at most so many bits differ, and the thumbnails little?
inline bool look_alike(const Likeness& a, const Likeness& b, int most) {
  constexpr int alike_thumbnails = 6;  // mean difference of grey values
  if (distance(a.hash, b.hash) > most) return false;
  int difference = 0;
  for (size_t i = 0; i < a.thumbnail.size(); ++i) difference += std::abs(a.thumbnail[i] - b.thumbnail[i]);
  return difference <= alike_thumbnails * static_cast<int>(a.thumbnail.size());
}

}  // namespace millrace::data
