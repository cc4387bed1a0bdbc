// "shuffle": every sample once, in an order of its own for each epoch.
#include "data/order/order.h"
#include "data/order/permutation.h"

namespace millrace::data {
namespace {

class Shuffle final : public Order {
 public:
  explicit Shuffle(int64_t count) : count_(count) {}
  int64_t length() const override { return count_; }
  Pick at(uint64_t seed, int64_t epoch, int64_t position) const override {
    return {Permutation(count_, seed, epoch)(position)};
  }
  void run(uint64_t seed, int64_t epoch, int64_t position, std::span<Pick> picks) const override {
    const Permutation permutation(count_, seed, epoch);  // its keys cost more than a place
    for (Pick& pick : picks) pick = {permutation(position++)};
  }

 private:
  int64_t count_;
};

}  // namespace

MILLRACE_ORDER(shuffle){.name = "shuffle",
                        .doc = "every sample once, in an order of its own for each epoch",
                        .place = 10,
                        .make = [](const OrderText&, const Population& population) -> std::unique_ptr<Order> {
                          return std::make_unique<Shuffle>(population.count);
                        }};

}  // namespace millrace::data
