// Samples drawn with given probabilities, each on its own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/order/order.h"

namespace millrace::data {

inline Setting column_setting() { return {"COLUMN", "of numbers from 0 on", std::string()}; }

/// Draws sample i with probability values[i] / sum, by Walker's alias method (Vose, IEEE Trans. Softw. Eng.
/// 17, 1991): O(1) a draw. Where the kind weighs, a pick's weight is 1 / (n · probability), so that weighted
/// means stay those of the plain data. InputError for values that are negative, not finite, or all zero.
std::unique_ptr<Order> drawn_order(const OrderText& text, const Population& population);

}  // namespace millrace::data
