// Samples drawn with given probabilities, each on its own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/order/order.h"

namespace millrace::data {

/// Draws sample i with probability values[i] / sum, by Walker's alias method (Vose, IEEE Trans. Softw. Eng. 17, 1991):
/// O(1) a draw. With `importance`, a pick's weight is 1 / (n · probability), so that weighted means stay those of the
/// plain data. InputError for values that are negative, not finite, or all zero.
std::unique_ptr<Order> drawn_order(const OrderKind& kind, const std::vector<std::string>& words,
                                   const Population& population, bool importance);

}  // namespace millrace::data
