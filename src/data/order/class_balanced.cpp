// "class-balanced": all classes equally often, rare ones by coming again sooner. Every run of as many samples
// as there are classes, from a multiple of that number on, has each class once.
#include "data/order/class_visits.h"
#include "data/order/order.h"

namespace millrace::data {
namespace {

class ClassBalanced final : public Order {
 public:
  ClassBalanced(int64_t count, std::vector<std::vector<int64_t>> samples)
      : visits_(std::move(samples)),
        classes_(static_cast<int64_t>(visits_.classes())),
        rounds_((count + classes_ - 1) / classes_) {}
  int64_t length() const override { return rounds_ * classes_; }

  Pick at(uint64_t seed, int64_t epoch, int64_t position) const override {
    const int64_t round = epoch * rounds_ + position / classes_;
    const auto label = static_cast<size_t>(Permutation(classes_, ~seed, round)(position % classes_));
    return {visits_.at(seed, label, round)};
  }

 private:
  ClassVisits visits_;
  int64_t classes_, rounds_;
};

}  // namespace

MILLRACE_ORDER(class_balanced){
    .name = "class-balanced",
    .doc = "all classes equally often, rare ones by coming again sooner",
    .place = 40,
    .by_class = true,
    .make = [](const OrderText&, const Population& population) -> std::unique_ptr<Order> {
      auto samples = samples_of_classes(population);
      std::erase_if(samples, [](const auto& of_class) { return of_class.empty(); });
      return std::make_unique<ClassBalanced>(population.count, std::move(samples));
    }};

}  // namespace millrace::data
