// "sequential": as the source has them.
#include "data/order/order.h"

namespace millrace::data {
namespace {

class Sequential final : public Order {
 public:
  explicit Sequential(int64_t count) : count_(count) {}
  int64_t length() const override { return count_; }
  Pick at(uint64_t, int64_t, int64_t position) const override { return {position}; }

 private:
  int64_t count_;
};

}  // namespace

const OrderKind sequential_order{
    "sequential", "sequential", nullptr,
    [](const std::vector<std::string>& words, Population population) -> std::unique_ptr<Order> {
      if (words.size() > 1) wrong_order(sequential_order, words, "it takes no words");
      return std::make_unique<Sequential>(population.count);
    }};

}  // namespace millrace::data
