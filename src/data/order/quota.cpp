// "quota cat=100 dog=50": so many samples of each class in an epoch (others: none), shuffled. A class goes
// through all of its samples before one comes again, over the epochs.
#include <algorithm>

#include "base/format.h"
#include "base/suggest.h"
#include "data/order/class_visits.h"
#include "data/order/order.h"

namespace millrace::data {
namespace {

class Quota final : public Order {
 public:
  Quota(std::vector<std::vector<int64_t>> samples, std::vector<int64_t> quotas)
      : visits_(std::move(samples)), quotas_(std::move(quotas)) {
    ends_.reserve(quotas_.size());
    for (const int64_t quota : quotas_) ends_.push_back(length_ += quota);
  }
  int64_t length() const override { return length_; }

  Pick at(uint64_t seed, int64_t epoch, int64_t position) const override {
    const int64_t place = Permutation(length_, seed, epoch)(position);
    const auto found = std::upper_bound(ends_.begin(), ends_.end(), place);
    const auto label = static_cast<size_t>(found - ends_.begin());
    const int64_t number = place - (ends_[label] - quotas_[label]);
    return {visits_.at(seed, label, epoch * quotas_[label] + number)};
  }

 private:
  ClassVisits visits_;
  std::vector<int64_t> quotas_, ends_;
  int64_t length_ = 0;
};

}  // namespace

MILLRACE_ORDER(quota){
    .name = "quota",
    .usage = "CLASS=NUMBER …",
    .doc = "so many samples of each class in an epoch, shuffled",
    .place = 60,
    .by_class = true,
    .make = [](const OrderText& text, const Population& population) -> std::unique_ptr<Order> {
      auto samples = samples_of_classes(population);
      std::vector<int64_t> quotas(samples.size());
      for (size_t i = 1; i < text.words.size(); ++i) {
        const size_t equals = text.words[i].rfind('=');
        const std::string name = text.words[i].substr(0, equals);
        const auto found = std::find(population.classes.begin(), population.classes.end(), name);
        if (equals == std::string::npos) text.wrong(fmt::format("\"{}\" lacks its number", name));
        if (found == population.classes.end())
          text.wrong(fmt::format("there is no class '{}'{}", name, did_you_mean(name, population.classes)));
        const auto label = static_cast<size_t>(found - population.classes.begin());
        quotas[label] = text.integer(std::string_view(text.words[i]).substr(equals + 1), 1);
        if (quotas[label] > 1'000'000'000'000) text.wrong("the number is too large");
        if (samples[label].empty()) text.wrong(fmt::format("the class '{}' has no samples", name));
      }
      if (text.words.size() < 2) text.wrong("no class is named");
      return std::make_unique<Quota>(std::move(samples), std::move(quotas));
    }};

}  // namespace millrace::data
