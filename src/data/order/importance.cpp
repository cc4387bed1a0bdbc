// "importance COLUMN": as "weighted", and the loss of each sample is weighted by the density ratio, so that it means the same.
#include "data/order/drawn.h"

namespace millrace::data {

const OrderKind importance_order{
    "importance", "importance COLUMN",
    [](const std::vector<std::string>& words) { return words.size() > 1 ? words[1] : std::string(); },
    [](const std::vector<std::string>& words, Population population) {
      return drawn_order(importance_order, words, population, true);
    }};

}  // namespace millrace::data
