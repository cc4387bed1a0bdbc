// Several sources in one training: which one the next sample comes from, and which sample that is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/order/order.h"
#include "data/order/shares.h"

namespace millrace::data {

/// Sources that lie one after the other in a population. The source of the sample at place g, counted over
/// all epochs, is drawn by its share with Philox from (seed, g); each source goes through its own order,
/// epoch after epoch. So the place in a mixture is how many samples were drawn of each source so far (they
/// add up to g): with it any batch can be made again, also when the shares have changed on the way.
class Mixture {
 public:
  /// `first`: of each source, its first sample in the population. `shares` as Shares has them.
  Mixture(std::vector<int64_t> first, std::vector<std::unique_ptr<Order>> orders,
          std::span<const double> shares);

  void set_shares(std::span<const double> shares) { shares_.set(shares); }
  size_t sources() const { return orders_.size(); }
  /// Samples of all sources together: what counts as an epoch.
  int64_t length() const { return length_; }
  /// The next samples from the place `drawn` on (one number a source), which moves on.
  void run(uint64_t seed, std::span<int64_t> drawn, std::span<Pick> picks) const;
  /// Moves on by `count` samples.
  void skip(uint64_t seed, std::span<int64_t> drawn, int64_t count) const;

 private:
  std::vector<int64_t> first_;
  std::vector<std::unique_ptr<Order>> orders_;
  Shares shares_;
  int64_t length_ = 0;
};

}  // namespace millrace::data
