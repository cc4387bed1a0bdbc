// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011). The value depends only on key and counter, so results do not depend on threads or order.
#pragma once

#include <array>
#include <cstdint>

namespace millrace {

/// Ten rounds of Philox 4x32 on one counter block.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// A stream of random numbers for host code (shuffles, augmentation): keyed by (seed, stream, position),
/// so that any sample's draws can be reproduced alone.
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t stream, uint64_t position = 0)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        stream_(stream),
        position_(position) {}

  /// The next 32 random bits.
  uint32_t next() {
    if (used_ == 4) {
      // Block number in the low word; stream and position are folded into the remaining 96 bits.
      block_ = philox({index_++, static_cast<uint32_t>(position_), static_cast<uint32_t>(stream_),
                       static_cast<uint32_t>(position_ >> 32) ^ (static_cast<uint32_t>(stream_ >> 32) << 8)},
                      key_);
      used_ = 0;
    }
    return block_[used_++];
  }
  /// Uniform in [0, 1) with 24 random bits.
  float uniform() { return static_cast<float>(next() >> 8) * 0x1p-24f; }
  /// Uniform integer in [0, bound), unbiased enough for bound < 2^32 (multiply-shift).
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>((uint64_t{next()} * bound) >> 32); }

 private:
  std::array<uint32_t, 2> key_;
  uint64_t stream_, position_;
  std::array<uint32_t, 4> block_{};
  uint32_t index_ = 0;
  int used_ = 4;
};

}  // namespace millrace
