// "weighted COLUMN": samples are drawn, with replacement, with a probability in proportion to a column.
#include "data/order/drawn.h"

namespace millrace::data {

const OrderKind weighted_order{
    "weighted", "weighted COLUMN",
    [](const std::vector<std::string>& words) { return words.size() > 1 ? words[1] : std::string(); },
    [](const std::vector<std::string>& words, Population population) {
      return drawn_order(weighted_order, words, population, false);
    }};

}  // namespace millrace::data
