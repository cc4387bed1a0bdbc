#include "data/feed/appetite.h"

#include <doctest/doctest.h>

using namespace millrace::data;

TEST_CASE("threads rest when batches wait for the model, and come back when it waits for them") {
  Appetite appetite(4);
  CHECK(appetite.active() == 4);
  // Batches are ready, but not all of those ahead: nothing changes.
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(appetite.handed_over(false, false));
  CHECK(appetite.active() == 4);
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(appetite.handed_over(false, true));
  CHECK(appetite.active() == 1);  // never none
  CHECK(appetite.handed_over(true, false));
  CHECK(appetite.active() == 2);
  // What turned out to be too few is tried again later, each time after longer.
  int before = 0;
  for (int round = 0; round < 5; ++round) {
    int batches = 0;
    while (appetite.active() == 2 && batches < 10'000) {
      appetite.handed_over(false, true);
      ++batches;
    }
    CHECK(batches > before);
    before = batches;
    CHECK(appetite.handed_over(true, false));
  }
  for (int i = 0; i < 10; ++i) appetite.handed_over(true, false);
  CHECK(appetite.active() == 4);
  CHECK_FALSE(appetite.handed_over(true, false));
}
