// "stratified": every sample once an epoch, the classes spread evenly: any run of the order has each class as
// often as its share asks for, give or take two samples.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <millrace/random.h>

#include "data/order/class_visits.h"
#include "data/order/order.h"

namespace millrace::data {
namespace {

class Stratified final : public Order {
 public:
  Stratified(int64_t count, std::vector<std::vector<int64_t>> samples) : visits_(std::move(samples)) {
    // Visit k of a class with n samples stands between k / n and (k + 1) / n of the epoch; sorting by that
    // spreads all classes. Where in between is each class's own: those of one size would share their places.
    std::vector<std::pair<double, int32_t>> places;
    places.reserve(static_cast<size_t>(count));
    for (size_t label = 0; label < visits_.classes(); ++label) {
      const auto n = static_cast<double>(visits_.samples(label).size());
      const double shift = std::fmod(0.5 + 0.6180339887498949 * static_cast<double>(label), 1.0);
      for (size_t k = 0; k < visits_.samples(label).size(); ++k)
        places.emplace_back((static_cast<double>(k) + shift) / n, static_cast<int32_t>(label));
    }
    std::sort(places.begin(), places.end());
    std::vector<int64_t> seen(visits_.classes());
    for (const auto& [place, label] : places) slots_.push_back({label, seen[static_cast<size_t>(label)]++});
  }
  int64_t length() const override { return static_cast<int64_t>(slots_.size()); }

  Pick at(uint64_t seed, int64_t epoch, int64_t position) const override {
    // The pattern begins elsewhere in each epoch, and within a class the samples are shuffled.
    const auto words =
        philox({0x73747261, 0, static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32)},
               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    const auto begin = static_cast<int64_t>((uint64_t{words[0]} << 32 | words[1]) % slots_.size());
    const Slot& slot = slots_[static_cast<size_t>((position + begin) % length())];
    const auto label = static_cast<size_t>(slot.label);
    return {
        visits_.at(seed, label, epoch * static_cast<int64_t>(visits_.samples(label).size()) + slot.number)};
  }

 private:
  struct Slot {
    int32_t label;
    int64_t number;
  };
  ClassVisits visits_;
  std::vector<Slot> slots_;
};

}  // namespace

MILLRACE_ORDER(stratified){
    .name = "stratified",
    .doc = "every sample once, the classes spread evenly",
    .place = 50,
    .by_class = true,
    .make = [](const OrderText&, const Population& population) -> std::unique_ptr<Order> {
      auto samples = samples_of_classes(population);
      return std::make_unique<Stratified>(population.count, std::move(samples));
    }};

}  // namespace millrace::data
