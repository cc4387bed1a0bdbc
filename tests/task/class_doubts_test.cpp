#include "task/class_doubts.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/format.h"

using namespace millrace;
using namespace millrace::task;

namespace {

std::vector<std::string> numbered_names(int64_t count, int64_t first) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(first + i));
  return names;
}

std::string doubts(const std::vector<std::string>& names, const std::vector<int64_t>& counts) {
  return fmt::format("{}", fmt::join(class_doubts("price", names, counts, "output"), "\n"));
}

}  // namespace

TEST_CASE("whole numbers that look like amounts are said, those of classes are not") {
  const std::string amounts = "are these amounts? output.kind = \"number\" predicts them";
  using Counts = std::vector<int64_t>;
  CHECK(doubts(numbered_names(1500, 300), Counts(1500, 40)).find(amounts) != std::string::npos);
  CHECK(doubts(numbered_names(30, 5), Counts(30, 1))
            .find("price has 30 different whole numbers in 30 samples") == 0);
  CHECK(doubts(numbered_names(1500, 0), Counts(1500, 40)).empty());  // as programs number classes
  CHECK(doubts(numbered_names(100, 1), Counts(100, 3)).empty());
  CHECK(doubts(numbered_names(8, 1), Counts(8, 1)).empty());  // too few to be sure
  std::vector<std::string> words = numbered_names(30, 5);
  for (std::string& word : words) word += " Mrs";
  CHECK(doubts(words, Counts(30, 1)).find("is it the right column?") != std::string::npos);
}

TEST_CASE("one class, and classes without samples, are said") {
  CHECK(doubts({"a", "b"}, {0, 7}) ==
        "all 7 samples to train on are of the class 'b': nothing can be learnt from them\n"
        "no sample to train on is of the class 'a'");
  CHECK(doubts({"a", "b"}, {}).empty());
  std::vector<int64_t> counts(40, 0);
  counts[0] = counts[1] = 500;
  CHECK(doubts(numbered_names(40, 0), counts).ends_with("and 28 more"));
  CHECK_THROWS_WITH_AS(require_two_classes({"a"}, "x.csv", "label", "output.classes"),
                       doctest::Contains("x.csv: all samples are of one class in the column 'label', 'a'"),
                       InputError);
  require_two_classes({"a", "b"}, "x.csv", "label", "output.classes");
}

TEST_CASE("values are too many for classes beyond a hundred, or where most samples have their own") {
  CHECK(too_many_classes(101, 100'000));
  CHECK_FALSE(too_many_classes(100, 100'000));
  CHECK(too_many_classes(31, 60));
  CHECK_FALSE(too_many_classes(30, 60));
  CHECK_FALSE(too_many_classes(10, 10));
}
