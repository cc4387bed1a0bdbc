// "quota cat=100 dog=50": so many samples of each class in an epoch (others: none), shuffled. A class goes
// through all of its samples before one comes again, over the epochs.
#include <algorithm>

#include "base/format.h"
#include "base/number_from.h"
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

int64_t quota_of(const OrderText& text, std::string_view digits) {
  constexpr int64_t most = 1'000'000'000'000;
  const std::optional<int64_t> value = number_from(digits);
  if (!value || *value < 1 || *value > most)
    text.wrong(fmt::format("\"{}\" is no whole number from 1 to {}", digits, most));
  return *value;
}

}  // namespace

MILLRACE_ORDER(quota){
    .name = "quota",
    .doc = "so many samples of each class in an epoch, shuffled",
    .place = 60,
    .settings = {{"CLASS=NUMBER", "samples of a class in an epoch; none of those that are not named",
                  std::vector<std::string>()}},
    .by_class = true,
    .own_length = true,
    .make = [](const OrderText& text, const Population& population) -> std::unique_ptr<Order> {
      auto samples = samples_of_classes(population);
      std::vector<int64_t> quotas(samples.size());
      for (const std::string& word : text.settings.texts("CLASS=NUMBER")) {
        const size_t equals = word.rfind('=');
        const std::string name = word.substr(0, equals);
        const auto found = std::find(population.classes.begin(), population.classes.end(), name);
        if (equals == std::string::npos) text.wrong(fmt::format("\"{}\" lacks its number", name));
        if (found == population.classes.end())
          text.wrong(fmt::format("there is no class '{}'{}", name, did_you_mean(name, population.classes)));
        const auto label = static_cast<size_t>(found - population.classes.begin());
        quotas[label] = quota_of(text, std::string_view(word).substr(equals + 1));
        if (samples[label].empty()) text.wrong(fmt::format("the class '{}' has no samples", name));
      }
      return std::make_unique<Quota>(std::move(samples), std::move(quotas));
    }};

}  // namespace millrace::data
