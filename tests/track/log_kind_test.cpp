#include "track/log_kind.h"

#include <doctest/doctest.h>

using namespace millrace::track;

TEST_CASE("slow logs get ten steps a second, longer records at 200 values a second, and all epochs") {
  const auto steps = std::make_shared<const Names>(), details = std::make_shared<const Names>(),
             epochs = std::make_shared<const Names>(Names{{}, {}, true});
  Thinned thinned;
  int counts[3] = {};
  // Two seconds of a thousand steps each, with details of every tenth.
  for (int i = 0; i < 2000; ++i) {
    const double time = 1e9 + i / 1000.0;
    counts[0] += thinned.wanted({steps, i, time, {1, 2, 3}});
    if (i % 10 == 0) counts[1] += thinned.wanted({details, i, time, std::vector<double>(100)});
    if (i % 500 == 0) counts[2] += thinned.wanted({epochs, i, time, std::vector<double>(100)});
  }
  CHECK(counts[0] >= 18);
  CHECK(counts[0] <= 20);
  CHECK(counts[1] == 4);
  CHECK(counts[2] == 4);
}
