#include "data/order/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/format.h"
#include "base/philox.h"

namespace millrace::data {

Mixture::Mixture(std::vector<int64_t> first, std::vector<std::unique_ptr<Order>> orders,
                 std::span<const double> shares)
    : first_(std::move(first)), orders_(std::move(orders)) {
  for (const auto& order : orders_) length_ += order->length();
  set_shares(shares);
}

void Mixture::set_shares(std::span<const double> shares) {
  if (shares.size() != orders_.size())
    fail<InputError>("{} weights for {} sources: each needs one", shares.size(), orders_.size());
  double sum = 0;
  for (const double share : shares) {
    if (!(share >= 0) || !std::isfinite(share))
      fail<InputError>("the weight of a source is {}: it is a number from 0 on", share);
    sum += share;
  }
  if (!(sum > 0) || !std::isfinite(sum))
    fail<InputError>("the weights of the sources are all 0: one must be more");
  limits_.clear();
  double below = 0;
  for (const double share : shares) limits_.push_back((below += share) / sum);
  // Rounding must not leave a gap at the end, nor give it to a source of share 0.
  for (size_t i = limits_.size(); i-- > 0;) {
    limits_[i] = 1;
    if (shares[i] > 0) break;
  }
}

size_t Mixture::source_at(uint64_t seed, int64_t place) const {
  const auto words = philox({static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32), 0, 0x6d69786f},
                            {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const double drawn = static_cast<double>((uint64_t{words[0]} << 32 | words[1]) >> 11) * 0x1p-53;
  return static_cast<size_t>(std::upper_bound(limits_.begin(), limits_.end(), drawn) - limits_.begin());
}

void Mixture::run(uint64_t seed, std::span<int64_t> drawn, std::span<Pick> picks) const {
  int64_t place = std::accumulate(drawn.begin(), drawn.end(), int64_t{0});
  for (Pick& pick : picks) {
    const size_t source = source_at(seed, place++);
    const int64_t number = drawn[source]++, length = orders_[source]->length();
    // Sources of one size must not have one order.
    const uint64_t own = seed ^ (0x9e3779b97f4a7c15 * static_cast<uint64_t>(source + 1));
    pick = orders_[source]->at(own, number / length, number % length);
    pick.index += first_[source];
  }
}

void Mixture::skip(uint64_t seed, std::span<int64_t> drawn, int64_t count) const {
  int64_t place = std::accumulate(drawn.begin(), drawn.end(), int64_t{0});
  for (; count > 0; --count) ++drawn[source_at(seed, place++)];
}

}  // namespace millrace::data
