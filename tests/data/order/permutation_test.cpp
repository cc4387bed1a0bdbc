#include "data/order/permutation.h"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

using millrace::data::Permutation;

TEST_CASE("the order is a permutation for every size, seed and epoch") {
  std::vector<int64_t> sizes = {1000, 1023, 1024, 1025, 50000};
  for (int64_t n = 1; n <= 130; ++n) sizes.push_back(n);
  for (const int64_t n : sizes)
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}})
      for (const int64_t epoch : {int64_t{0}, int64_t{7}}) {
        const Permutation order(n, seed, epoch);
        std::vector<bool> seen(n);
        bool good = true;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t value = order(i);
          good = good && value >= 0 && value < n && !seen[value];
          if (good) seen[value] = true;
        }
        CHECK_MESSAGE(good, "n ", n);
      }
}

TEST_CASE("the order mixes: position, neighbours and halves are as in random permutations") {
  constexpr int64_t n = 50000;
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    const Permutation order(n, seed, 0);
    double xy = 0, displacement = 0;
    int64_t close = 0;
    std::vector<int> cells(100);  // where each tenth of the positions goes
    for (int64_t i = 0; i < n; ++i) {
      const int64_t value = order(i);
      xy += (i - n / 2.0) * (value - n / 2.0);
      displacement += std::abs(static_cast<double>(value - i));
      if (i > 0) close += std::abs(value - order(i - 1)) < 100;
      ++cells[i / (n / 10) * 10 + value / (n / 10)];
    }
    const double correlation = xy / (n * (static_cast<double>(n) * n / 12));
    CHECK(std::abs(correlation) < 0.02);                       // standard deviation 0.0045
    CHECK(std::abs(displacement / n / (n / 3.0) - 1) < 0.02);  // mean n/3
    CHECK(std::abs(static_cast<double>(close) - 199.6) < 75);  // 5 standard deviations
    double chi = 0;
    for (const int cell : cells) chi += (cell - 500.0) * (cell - 500.0) / 500.0;
    CHECK(chi < 140);  // 81 degrees of freedom, at most 1 in 20,000
  }
}

TEST_CASE("small orders reach every permutation about equally often") {
  // All 24 orders of four samples, over many epochs.
  std::vector<int> counts(256);
  constexpr int trials = 24000;
  for (int epoch = 0; epoch < trials; ++epoch) {
    const Permutation order(4, 9, epoch);
    ++counts[order(0) * 64 + order(1) * 16 + order(2) * 4 + order(3)];
  }
  int reached = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++reached;
    CHECK(count > 600);
    CHECK(count < 1500);
  }
  CHECK(reached == 24);
}

TEST_CASE("orders of other epochs and seeds are unrelated") {
  constexpr int64_t n = 10000;
  const Permutation base(n, 1, 0), epoch(n, 1, 1), seed(n, 2, 0);
  int same_epoch = 0, same_seed = 0;
  for (int64_t i = 0; i < n; ++i) {
    same_epoch += base(i) == epoch(i);
    same_seed += base(i) == seed(i);
  }
  CHECK(same_epoch < 10);  // one is expected
  CHECK(same_seed < 10);
}
