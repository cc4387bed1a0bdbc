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

MILLRACE_ORDER(sequential){
    .name = "sequential",
    .doc = "as the source has them",
    .place = 20,
    .make = [](const OrderText&, const Population& population) -> std::unique_ptr<Order> {
      return std::make_unique<Sequential>(population.count);
    }};

}  // namespace millrace::data
