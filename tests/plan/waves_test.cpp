#include <doctest/doctest.h>
#include <vector>

#include <millrace/random.h>

#include "plan/plan.h"

using namespace millrace;

TEST_CASE("launches of one wave do not depend on each other, and none comes before what it depends on") {
  RandomStream random(5, 1);
  for (int round = 0; round < 100; ++round) {
    const int count = 1 + static_cast<int>(random.below(40));
    std::vector<std::vector<int>> after(count);
    std::vector<double> small(count);
    for (int i = 0; i < count; ++i) {
      for (int j = i + 1; j < count; ++j)
        if (random.below(12) == 0) after[i].push_back(j);
      small[i] = random.below(4) == 0 ? 0 : 1000.0 * (1 + random.below(60));
    }
    const std::vector<int> wave = form_waves(after, small);
    for (int i = 0; i < count; ++i) {
      for (const int later : after[i]) CHECK(wave[i] < wave[later]);
      for (int j = 0; j < count; ++j)
        if (i != j && small[i] == 0) CHECK(wave[i] != wave[j]);
    }
  }
}

TEST_CASE("small independent launches become one, a large one stays alone") {
  CHECK(form_waves({{}, {}, {}, {}}, {1, 1, 0, 1}) == std::vector<int>{0, 0, 1, 0});
  // A chain, and beside it something for its gaps.
  CHECK(form_waves({{1}, {2}, {}, {}}, {1, 1, 1, 1}) == std::vector<int>{0, 1, 2, 0});
}
