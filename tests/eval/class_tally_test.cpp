#include "eval/class_tally.h"

#include <cmath>
#include <doctest/doctest.h>

using namespace millrace;
using namespace millrace::eval;

TEST_CASE("classes are counted by what they are and what they are told to be") {
  // Told 0 1 0 2 0 2 0 0 of 0 1 1 2 2 2 0 1; values of scikit-learn 1.9.1's precision_recall_fscore_support.
  const std::vector<float> logits = {2, 0, -1, 0, 1, 0, 2, 1, 0, -1, 0,  2,
                                     1, 0, 0,  1, 2, 3, 0, 0, 0, 3,  -2, 0};
  const std::vector<int64_t> labels = {0, 1, 1, 2, 2, 2, 0, 1};
  ClassTally tally;
  const Judged all{.outputs = logits, .rows = 8, .width = 3, .labels = labels};
  tally.update(all.part(0, 3), 0);
  tally.update(all.part(3, 5), 3);
  CHECK(tally.confusion() == std::vector<int64_t>{2, 0, 0, 2, 1, 0, 1, 0, 2});
  const auto classes = tally.finalize();
  REQUIRE(classes.size() == 3);
  CHECK(classes[0].count == 2);
  CHECK(classes[0].told == 5);
  CHECK(classes[0].precision.value == doctest::Approx(0.4));
  CHECK(classes[0].f1.value == doctest::Approx(4.0 / 7));
  CHECK(classes[1].recall.value == doctest::Approx(1.0 / 3));
  CHECK(classes[2].precision.value == 1);
  CHECK(std::isnan(classes[0].precision.low));  // of fewer rows than groups
}

TEST_CASE("intervals of classes are those of the metric of the second of two classes") {
  std::vector<float> logits;
  std::vector<int64_t> labels;
  for (int i = 0; i < 200; ++i) {
    labels.push_back(i % 3 == 0);
    logits.insert(logits.end(), {0, ((i * 7) % 10 < 6) == (i % 3 == 0) ? 1.0F : -1.0F});
  }
  const Judged all{.outputs = logits, .rows = 200, .width = 2, .labels = labels};
  ClassTally tally;
  tally.update(all, 0);
  Measurement measurement({"precision", "recall", "f1"}, "class");
  measurement.update(all);
  const auto expected = measurement.finalize();
  const auto told = tally.finalize()[1];
  size_t i = 0;
  for (const Measured& each : {told.precision, told.recall, told.f1}) {
    CHECK(each.value == expected[i].value);
    CHECK(each.low == expected[i].low);
    CHECK(each.high == expected[i].high);
    ++i;
  }
}

TEST_CASE("labels have no confusion, and thresholds count") {
  const std::vector<float> logits = {1, -1, 2, 2};
  const std::vector<double> values = {1, 0, 0, 1}, thresholds = {1.5, 0};
  ClassTally tally;
  tally.update({.outputs = logits, .rows = 2, .width = 2, .values = values, .thresholds = thresholds}, 0);
  CHECK(tally.confusion().empty());
  CHECK(tally.finalize()[0].recall.value == 0);
  CHECK(tally.finalize()[0].told == 1);
  CHECK(tally.finalize()[1].f1.value == 1);
}
