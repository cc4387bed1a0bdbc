#include "task/would_fit.h"

#include <doctest/doctest.h>

using namespace millrace::task;

TEST_CASE("what would fit is named, and what it is named for does fit") {
  Recipe::Train train;
  train.batch = 96;
  // 10 stay, a row takes 1.
  CHECK(would_fit(train, 10, 96, 106) == "");
  CHECK(would_fit(train, 10, 96, 105) ==
        "train.batch = 95, train.accumulate = 2 (with the batch as it is) or train.precision = \"bf16\"");
  CHECK(would_fit(train, 10, 96, 35) == "train.batch = 25 or train.accumulate = 4 (with the batch as it is)");
  // 40 are too many for half of 96, and 32 are the next divisor's.
  CHECK(would_fit(train, 10, 96, 50) == "train.batch = 40 or train.accumulate = 3 (with the batch as it is)");
  // A third of 96 is one more than fits.
  CHECK(would_fit(train, 10, 96, 41) == "train.batch = 31 or train.accumulate = 4 (with the batch as it is)");
  CHECK(would_fit(train, 60, 96, 90).ends_with("train.precision = \"bf16-pure\"") == true);
  CHECK(would_fit(train, 100, 96, 99) == "train.precision = \"bf16-pure\"");
  CHECK(would_fit(train, 100, 96, 50) == "");
  train.accumulate = 3;
  CHECK(would_fit(train, 0, 32, 10) ==
        "train.batch = 30 (in 3 parts) or train.accumulate = 12 (with the batch as it is)");
  train.precision = "bf16";
  train.batch = 3;
  CHECK(would_fit(train, 0, 32, 10) == "");
}
