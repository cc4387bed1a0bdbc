#include <doctest/doctest.h>
#include <vector>

#include <millrace/random.h>

#include "plan/plan.h"

using namespace millrace;

namespace {

Storage arena(int64_t bytes, int first, int last) {
  Storage s;
  s.bytes = bytes;
  s.first = first;
  s.last = last;
  return s;
}

}  // namespace

TEST_CASE("storages that live at the same time never overlap") {
  RandomStream random(3, 1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Storage> storages;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(random.below(40));
      storages.push_back(arena(1 + random.below(5000), first, first + static_cast<int>(random.below(10))));
    }
    const int64_t size = place_storages(storages);
    for (size_t a = 0; a < storages.size(); ++a) {
      CHECK(storages[a].offset % 64 == 0);
      CHECK(storages[a].offset + storages[a].bytes <= size);
      for (size_t b = 0; b < a; ++b) {
        const Storage &x = storages[a], &y = storages[b];
        if (x.last < y.first || y.last < x.first) continue;
        const bool apart = x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset;
        CHECK(apart);
      }
    }
  }
}

TEST_CASE("a chain of equal buffers needs only two places") {
  std::vector<Storage> storages;
  for (int i = 0; i < 20; ++i) storages.push_back(arena(1024, i, i + 1));
  CHECK(place_storages(storages) == 2048);
}
