#include "track/exhibit.h"

#include <cmath>
#include <doctest/doctest.h>

#include "base/file.h"
#include "support/temp_folder.h"
#include "track/exhibit_files.h"

using namespace millrace;
using namespace millrace::track;

TEST_CASE("a histogram has every finite value in one bucket, the greatest in the last") {
  const Array values = Array::of(f32, {8}, std::vector<double>{0, 1, 2, 3, 4, 4, NAN, INFINITY});
  const auto buckets = histogram_of(values, 4);
  REQUIRE(buckets.size() == 4);
  const double counts[] = {1, 1, 1, 3};
  for (size_t i = 0; i < 4; ++i) {
    CHECK(buckets[i].left == static_cast<double>(i));
    CHECK(buckets[i].right == static_cast<double>(i + 1));
    CHECK(buckets[i].count == counts[i]);
  }
  const auto halves = histogram_of(values.converted(bf16), 4);
  REQUIRE(halves.size() == 4);
  CHECK(halves[3].count == 3);
}

TEST_CASE("one value is a bucket of no width, and what is not finite is none") {
  const auto one = histogram_of(Array::full(f32, {5}, 2));
  REQUIRE(one.size() == 1);
  CHECK(one[0].left == 2);
  CHECK(one[0].right == 2);
  CHECK(one[0].count == 5);
  CHECK(histogram_of(Array::full(f32, {5}, NAN)).empty());
  CHECK(histogram_of(Array(f32, {0})).empty());
}

TEST_CASE("texts and pictures that are shown are files, each the newest") {
  const testing::TempFolder folder;
  ExhibitFiles files(folder.path());
  files.show({"samples", "samples.md", "| a |\n", {}, {}}, 7, 0);
  files.show({"samples/pictures", "samples.png", "", Exhibit::Picture{"png", 1, 1}, {}}, 7, 0);
  files.show({"samples", "samples.md", "| b |\n", {}, {}}, 9, 0);
  files.show({"weights/w", "", "", {}, {{0, 1, 2}}}, 9, 0);
  files.flush();
  CHECK(read_text(folder / "samples.md") == "Step 9\n\n| b |\n");
  CHECK(read_text(folder / "samples.png") == "png");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}
