// Which of several sources the next sample comes from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace::data {

/// Of each source, how often it is drawn. The source at a place, counted over all samples of a training, is
/// drawn with Philox from (seed, place) alone.
class Shares {
 public:
  /// One for each of `sources`, ≥ 0, not all 0; they need not add up to 1. InputError.
  Shares(size_t sources, std::span<const double> shares) : sources_(sources) { set(shares); }
  void set(std::span<const double> shares);
  size_t source_at(uint64_t seed, int64_t place) const;
  /// What the sources' own orders are drawn from: sources of one size must not have one order.
  static uint64_t own_seed(uint64_t seed, size_t source) {
    return seed ^ (0x9e3779b97f4a7c15 * static_cast<uint64_t>(source + 1));
  }

 private:
  size_t sources_;
  std::vector<double> limits_;  // sums of the shares, the last one 1
};

}  // namespace millrace::data
