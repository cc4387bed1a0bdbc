#include "target/tuning_cache.h"

#include <doctest/doctest.h>
#include <string>

#include "base/file.h"
#include "support/temp_folder.h"

using namespace millrace;

TEST_CASE("of processes that measure a problem at the same time the first one's choice holds for all") {
  const testing::TempFolder folder;
  const auto path = folder.path() / "there" / "choices.tsv";
  TuningCache one(path, "cpu"), two(path, "cpu"), other(path, "other cpu"), nowhere("", "cpu");
  CHECK(one.keep("a", "x") == "x");
  CHECK(one.keep("a", "y") == "x");
  CHECK(two.keep("b", "z") == "z");
  CHECK(!one.find("b"));
  CHECK(two.keep("a", "y") == "x");
  CHECK(two.find("a") == "x");
  CHECK(one.keep("b", "y") == "z");
  CHECK(other.keep("a", "w") == "w");
  CHECK(nowhere.keep("a", "v") == "v");
  CHECK(nowhere.find("a") == "v");
  CHECK(TuningCache(path, "cpu").find("b") == "z");
  CHECK(read_text(path) == "cpu\ta\tx\ncpu\tb\tz\nother cpu\ta\tw\n");
}
