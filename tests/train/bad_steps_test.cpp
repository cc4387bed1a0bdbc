#include "train/bad_steps.h"

#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/file.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::train;

TEST_CASE("a loss is far above others by their median and their median absolute deviation") {
  LossWatch watch;
  for (size_t i = 0; i + 1 < LossWatch::least; ++i) watch.add(static_cast<double>(i));
  CHECK(std::isinf(watch.limit(10)));
  watch.add(19);
  // 0 … 19: the median is 9.5, the absolute deviations 0.5, 0.5, 1.5, 1.5 … have the median 5.
  CHECK(watch.limit(10) == doctest::Approx(9.5 + 10 * 1.4826 * 5));
  CHECK(watch.deviations(9.5 + 1.4826 * 5) == doctest::Approx(1));
  CHECK(std::isinf(watch.limit(0)));
  // One that is far away moves the limit by little.
  watch.add(1e30);
  CHECK(watch.limit(10) < 100);
  CHECK(watch.limit(10) > 9.5 + 10 * 1.4826 * 5);
}

TEST_CASE("losses that do not move still may by a part of themselves, and only the last ones count") {
  LossWatch watch;
  for (size_t i = 0; i < LossWatch::most; ++i) watch.add(2);
  CHECK(watch.limit(5) == doctest::Approx(2 + 5 * 0.02));
  for (size_t i = 0; i < LossWatch::most; ++i) watch.add(-4);
  CHECK(watch.losses().size() == LossWatch::most);
  CHECK(watch.limit(5) == doctest::Approx(-4 + 5 * 0.04));
  LossWatch other;
  other.set({watch.losses().begin(), watch.losses().end()});
  CHECK(other.limit(5) == watch.limit(5));
}

TEST_CASE("bad steps are noted, read back, and forgotten behind a step; a line that is cut off is left out") {
  const testing::TempFolder folder;
  const auto path = folder / "recovery.jsonl";
  CHECK(read_bad_steps(path).empty());
  forget_bad_steps(path, 3);
  write_bad_step(path, {7, "skipped", "the loss is \"NaN\"", -1, 1, "2026-01-31T12:00:00Z"});
  write_bad_step(path, {9, "rolled back", "infinite", 6, 0.25, "2026-01-31T12:00:01Z"});
  write_file(path, read_text(path) + "{\"step\": 12, \"wh");
  const auto all = read_bad_steps(path);
  REQUIRE(all.size() == 2);
  CHECK(all[0].why == "the loss is \"NaN\"");
  CHECK(all[0].to == -1);
  CHECK(all[1].to == 6);
  CHECK(all[1].lr_factor == 0.25);
  CHECK(bad_step_text(all[1]) ==
        "step 9: rolled back to the weights of step 6, the rate from there on times 0.25: infinite");
  forget_bad_steps(path, 8);
  CHECK(read_bad_steps(path).size() == 1);
  write_file(path, std::string_view("[1]\n"));
  CHECK_THROWS_AS(read_bad_steps(path), InputError);
}
