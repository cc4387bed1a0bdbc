// Endless visits to the samples of each class: all of them in a random order, then all again in another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "data/order/permutation.h"

namespace millrace::data {

class ClassVisits {
 public:
  /// `samples`: of each class.
  explicit ClassVisits(std::vector<std::vector<int64_t>> samples) : samples_(std::move(samples)) {}

  size_t classes() const { return samples_.size(); }
  const std::vector<int64_t>& samples(size_t label) const { return samples_[label]; }
  /// The sample of the class's visit `number`, counted from the beginning of the training.
  int64_t at(uint64_t seed, size_t label, int64_t number) const {
    const std::vector<int64_t>& own = samples_[label];
    const auto count = static_cast<int64_t>(own.size());
    const uint64_t key = seed ^ (0xd1342543de82ef95 * (label + 1));
    return own[static_cast<size_t>(Permutation(count, key, number / count)(number % count))];
  }

 private:
  std::vector<std::vector<int64_t>> samples_;
};

}  // namespace millrace::data
