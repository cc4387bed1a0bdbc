#include "base/parallel_for.h"

#include <atomic>
#include <doctest/doctest.h>
#include <stdexcept>
#include <string>
#include <vector>

using namespace millrace;

TEST_CASE("parallel_for runs every number once and rethrows the lowest failure") {
  for (const int threads : {1, 3}) {
    std::vector<std::atomic<int>> hits(500);
    parallel_for(500, threads, [&](int64_t i) { ++hits[static_cast<size_t>(i)]; });
    for (const auto& hit : hits) CHECK(hit == 1);
    CHECK_THROWS_WITH(parallel_for(500, threads,
                                   [](int64_t i) {
                                     if (i >= 123) throw std::runtime_error(std::to_string(i));
                                   }),
                      "123");
  }
}
