#include "data/order/mixture.h"

#include <numeric>

namespace millrace::data {

Mixture::Mixture(std::vector<int64_t> first, std::vector<std::unique_ptr<Order>> orders,
                 std::span<const double> shares)
    : first_(std::move(first)), orders_(std::move(orders)), shares_(orders_.size(), shares) {
  for (const auto& order : orders_) length_ += order->length();
}

void Mixture::run(uint64_t seed, std::span<int64_t> drawn, std::span<Pick> picks) const {
  int64_t place = std::accumulate(drawn.begin(), drawn.end(), int64_t{0});
  for (Pick& pick : picks) {
    const size_t source = shares_.source_at(seed, place++);
    const int64_t number = drawn[source]++, length = orders_[source]->length();
    pick = orders_[source]->at(Shares::own_seed(seed, source), number / length, number % length);
    pick.index += first_[source];
  }
}

void Mixture::skip(uint64_t seed, std::span<int64_t> drawn, int64_t count) const {
  int64_t place = std::accumulate(drawn.begin(), drawn.end(), int64_t{0});
  for (; count > 0; --count) ++drawn[shares_.source_at(seed, place++)];
}

}  // namespace millrace::data
