#include "eval/spearman.h"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

using namespace millrace::eval;

TEST_CASE("Spearman's correlation is scipy's, equals share ranks") {
  const std::vector<double> x = {3, 1, 4, 1, 5, 9, 2, 6}, y = {2, 7, 1, 8, 2, 8, 1, 8};
  CHECK(spearman(x, y) == doctest::Approx(0.19885368120992467).epsilon(1e-12));
  CHECK(spearman(x, x) == doctest::Approx(1));
  CHECK(spearman(std::vector<double>{1, 2, 3}, std::vector<double>{30, 20, 10}) == doctest::Approx(-1));
  CHECK(std::isnan(spearman(std::vector<double>{1, 1}, std::vector<double>{1, 2})));
  CHECK(std::isnan(spearman(std::vector<double>{1, 2}, std::vector<double>{NAN, 2})));
  CHECK(std::isnan(spearman({}, {})));
}
