#include "eval/compare.h"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

using namespace millrace;
using namespace millrace::eval;

namespace {

/// Answers of a model to rows of two classes: right where told.
Measurement answers(const std::vector<int>& right, int64_t groups = 200) {
  Measurement made({"accuracy", "log-loss"}, "class", groups);
  made.keep_rows();
  for (size_t row = 0; row < right.size(); ++row) {
    const std::vector<float> logits = right[row] ? std::vector<float>{0, 2} : std::vector<float>{2, 0};
    const std::vector<int64_t> label = {1};
    made.at(static_cast<int64_t>(row));
    made.update({.outputs = logits, .rows = 1, .width = 2, .labels = label, .values = {}});
  }
  return made;
}

/// The first `hits` of `rows` are right.
std::vector<int> first_right(size_t rows, size_t hits) {
  std::vector<int> right(rows);
  for (size_t i = 0; i < hits; ++i) right[i] = 1;
  return right;
}

}  // namespace

// statsmodels 0.14: mcnemar([[0, 10], [25, 0]], exact=True).pvalue, and so on.
TEST_CASE("McNemar's exact test has statsmodels' values") {
  CHECK(mcnemar(10, 25).p == doctest::Approx(0.016673847800120715).epsilon(1e-9));
  CHECK(mcnemar(25, 10).p == doctest::Approx(0.016673847800120715).epsilon(1e-9));
  CHECK(mcnemar(0, 5).p == doctest::Approx(0.0625));
  CHECK(mcnemar(4, 4).p == 1);
  CHECK(mcnemar(0, 0).p == 1);
}

// scipy 1.11: ttest_ind([.81, .83, .80], [.84, .85, .86, .83], equal_var=False), its p and
// confidence_interval().
TEST_CASE("seeds are compared by Welch's t-test, with SciPy's values") {
  const std::vector<double> a = {0.81, 0.83, 0.80}, b = {0.84, 0.85, 0.86, 0.83};
  const auto made = compare_seeds(a, b);
  REQUIRE(made);
  CHECK(made->difference() == doctest::Approx(0.03166666666666673));
  CHECK(made->p == doctest::Approx(0.04477821306862145).epsilon(1e-9));
  CHECK(made->low == doctest::Approx(0.0011993520789421626).epsilon(1e-9));
  CHECK(made->high == doctest::Approx(0.06213398125439086).epsilon(1e-9));
  CHECK(made->significant());
  CHECK(made->more == 0);
  CHECK_FALSE(compare_seeds(a, std::vector<double>{0.9}));
}

TEST_CASE("seeds that differ as much as their runs want more of them") {
  const std::vector<double> a = {0.80, 0.84}, b = {0.82, 0.86};
  const auto made = compare_seeds(a, b);
  REQUIRE(made);
  CHECK_FALSE(made->significant());
  // Deviation 0.0283, difference 0.02: statsmodels' tt_ind_solve_power(0.02 / 0.0283, power=0.8) wants 32.4.
  CHECK(made->more >= 30);
  CHECK(made->more <= 32);
}

TEST_CASE("equal seeds are no difference, and one that all show is one") {
  const std::vector<double> same = {0.5, 0.5}, other = {0.6, 0.6};
  CHECK(compare_seeds(same, same)->p == 1);
  CHECK(compare_seeds(same, other)->p == 0);
  CHECK(compare_seeds(same, other)->significant());
}

TEST_CASE("the paired bootstrap has the width that theory wants") {
  // 1,000 rows, 100 of which only the first has right, 140 only the second: the difference is 0.04, its
  // standard error sqrt((100 + 140) / 1000² - 0.04² / 1000) = 0.01544.
  std::vector<int> a(1000), b(1000);
  for (size_t i = 0; i < 1000; ++i) {
    const size_t at = i * 7 % 1000;
    a[i] = at < 600 || (at >= 900);
    b[i] = at < 600 || (at >= 600 && at < 740);
  }
  const Measurement first = answers(a), second = answers(b);
  const Difference made = compare_rows({&first}, {&second}, 0, 0);
  CHECK(made.difference() == doctest::Approx(0.04));
  CHECK(made.high - made.low == doctest::Approx(2 * 1.96 * 0.01544).epsilon(0.15));
  CHECK(made.significant());
  const auto test = compare_answers(first, second, 0, 0);
  REQUIRE(test);
  CHECK(test->only_first == 100);
  CHECK(test->only_second == 140);
  CHECK_FALSE(compare_answers(first, second, 1, 1));  // log-loss: no share of rows
}

TEST_CASE("the same answers differ by nothing at all") {
  const Measurement made = answers(first_right(300, 200));
  const Difference none = compare_rows({&made}, {&made}, 0, 0);
  CHECK(none.difference() == 0);
  CHECK(none.low == 0);
  CHECK(none.high == 0);
  CHECK_FALSE(none.significant());
}

TEST_CASE("a handful of rows has no interval") {
  const auto between = [](const Measurement& first, const Measurement& second) {
    return compare_rows({&first}, {&second}, 0, 0);
  };
  const Difference few = between(answers(first_right(19, 19)), answers(first_right(19, 3)));
  CHECK(std::isnan(few.low));
  CHECK_FALSE(few.significant());
  CHECK(std::isfinite(between(answers(first_right(20, 19)), answers(first_right(20, 3))).low));
}

TEST_CASE("of several seeds each has its own value, and their mean counts") {
  // Each puts all rows of class 1 above the others, on scales of their own: thrown together they do not.
  const auto ranked = [](float from) {
    Measurement made({"roc-auc"}, "class", 200);
    for (int64_t row = 0; row < 200; ++row) {
      const std::vector<float> logits = {0, from + static_cast<float>(row % 2)};
      const std::vector<int64_t> label = {row % 2};
      made.at(row);
      made.update({.outputs = logits, .rows = 1, .width = 2, .labels = label, .values = {}});
    }
    return made;
  };
  const Measurement low = ranked(-5), high = ranked(3);
  Measurement together = low.empty();
  together.merge(low);
  together.merge(high);
  CHECK(compare_rows({&together}, {&together}, 0, 0).first < 0.9);
  const Difference made = compare_rows({&low, &high}, {&high, &low}, 0, 0);
  CHECK(made.first == 1);
  CHECK(made.second == 1);
  CHECK(made.low == 0);
  CHECK(made.high == 0);
}

TEST_CASE("a metric that stands elsewhere in another measurement is found by its place") {
  const Measurement first = answers(first_right(100, 60));
  Measurement second({"log-loss", "accuracy"}, "class", 200);
  for (int64_t row = 0; row < 100; ++row) {
    const std::vector<float> logits = {0, 2};
    const std::vector<int64_t> label = {1};
    second.at(row);
    second.update({.outputs = logits, .rows = 1, .width = 2, .labels = label, .values = {}});
  }
  CHECK(compare_rows({&first}, {&second}, 0, 1).difference() == doctest::Approx(0.4));
}

TEST_CASE("rows that belong together stay in one group") {
  Measurement made({"accuracy"}, "tokens", 200);
  const std::vector<float> logits = {0, 2, 0, 2, 2, 0};
  const std::vector<int64_t> labels = {1, 1, 1};
  made.at(7, 0);
  made.update({.outputs = logits, .rows = 3, .width = 2, .labels = labels, .values = {}});
  CHECK(made.rows_in(7) == 3);
  CHECK(made.count() == 3);
  CHECK(made.empty().count() == 0);
}
