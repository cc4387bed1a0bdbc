// A pseudo-random order of n samples without storing it.
#pragma once

#include <cstdint>

#include <millrace/random.h>

#include "base/fnv.h"

namespace millrace::data {

/// The permutation of [0, n) that belongs to (seed, epoch), each value computed in O(1): a Feistel network
/// over the smallest power of two ≥ n whose results outside [0, n) are encrypted again ("cycle walking";
/// Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). Round keys come from Philox.
class Permutation {
 public:
  Permutation(int64_t n, uint64_t seed, int64_t epoch) : n_(static_cast<uint64_t>(n)) {
    int bits = 0;
    while (bits < 63 && (uint64_t{1} << bits) < n_) ++bits;
    low_bits_ = bits / 2;
    low_mask_ = (uint64_t{1} << low_bits_) - 1;
    high_mask_ = (uint64_t{1} << (bits - low_bits_)) - 1;
    for (uint32_t i = 0; i < rounds; i += 2) {
      const auto words =
          philox({i, static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32), 0x6f726465},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
      keys_[i] = uint64_t{words[0]} << 32 | words[1];
      keys_[i + 1] = uint64_t{words[2]} << 32 | words[3];
    }
  }

  /// The sample at position `i` of the order; 0 ≤ i < n.
  int64_t operator()(int64_t i) const {
    uint64_t value = static_cast<uint64_t>(i);
    do value = network(value);
    while (value >= n_);
    return static_cast<int64_t>(value);
  }

 private:
  static constexpr uint32_t rounds = 10;

  uint64_t network(uint64_t value) const {
    uint64_t low = value & low_mask_, high = value >> low_bits_;
    for (uint32_t i = 0; i < rounds; i += 2) {
      high ^= mixed_bits(low ^ keys_[i]) & high_mask_;
      low ^= mixed_bits(high ^ keys_[i + 1]) & low_mask_;
    }
    return high << low_bits_ | low;
  }

  uint64_t n_, low_mask_ = 0, high_mask_ = 0;
  int low_bits_ = 0;
  uint64_t keys_[rounds];
};

}  // namespace millrace::data
