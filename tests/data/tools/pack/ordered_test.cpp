#include "data/tools/pack/ordered.h"

#include <atomic>
#include <doctest/doctest.h>
#include <string>

#include <millrace/error.h>

using namespace millrace;

TEST_CASE("what is read ahead comes in order, and not further ahead than was said") {
  std::atomic<int64_t> taken{0}, furthest{0};
  data::Ordered<std::string> ahead(0, 200, 3, 7, [&](int64_t i) {
    for (int64_t seen = furthest;
         seen < i - taken && i > taken && !furthest.compare_exchange_weak(seen, i - taken);) {
    }
    if (i % 50 == 7) throw InputError("no " + std::to_string(i));
    return std::to_string(i);
  });
  for (int64_t i = 0; i < 200; ++i) {
    if (i % 50 == 7)
      CHECK_THROWS_WITH_AS(ahead.next(), ("no " + std::to_string(i)).c_str(), InputError);
    else
      CHECK(ahead.next() == std::to_string(i));
    taken = i + 1;
  }
  CHECK(furthest <= 8);  // 7, and one that was taken and not yet counted here
}

TEST_CASE("who stops early does not wait for all that could be read ahead") {
  std::atomic<int> made{0};
  {
    data::Ordered<int> ahead(0, 1 << 20, 2, 6, [&](int64_t i) {
      ++made;
      return static_cast<int>(i);
    });
    CHECK(ahead.next() == 0);
  }
  CHECK(made <= 7);
  data::Ordered<int> none(0, 0, 2, 6, [](int64_t) { return 1; });
}
