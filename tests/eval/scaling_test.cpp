#include "eval/scaling.h"

#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/random.h>

using namespace millrace;
using namespace millrace::eval;

namespace {

double normal_of(RandomStream& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

std::vector<ScalePoint> drawn_points(const ScaleLaw& law, int seeds, double noise, uint64_t seed,
                                     std::vector<double> sizes = {1. / 16, 1. / 8, 1. / 4, 1. / 2, 1}) {
  RandomStream random(seed, 3);
  std::vector<ScalePoint> points;
  for (const double size : sizes)
    for (int i = 0; i < seeds; ++i) points.push_back({size, law.at(size) * (1 + noise * normal_of(random))});
  return points;
}

}  // namespace

TEST_CASE("a law of scale is found again from points on it") {
  for (const ScaleLaw& law : {ScaleLaw{0.02, 0.05, 0.5}, ScaleLaw{0, 0.1, 0.3}, ScaleLaw{0.3, 0.4, 1.1}}) {
    const ScaleFit fit(drawn_points(law, 2, 0, 1));
    CHECK(fit.law().floor == doctest::Approx(law.floor).epsilon(0.02));
    CHECK(fit.law().factor == doctest::Approx(law.factor).epsilon(0.02));
    CHECK(fit.law().exponent == doctest::Approx(law.exponent).epsilon(0.02));
    CHECK(fit.at(2).value == doctest::Approx(law.at(2)).epsilon(0.005));
    CHECK(fit.at(10).value == doctest::Approx(law.at(10)).epsilon(0.02));
    CHECK(fit.doubt() == "");
  }
}

TEST_CASE("sizes may be samples: the law does not depend on their unit") {
  const ScaleFit fit(drawn_points({0.05, 4, 0.6}, 2, 0, 1, {100, 200, 400, 800, 1600}));
  CHECK(fit.law().factor == doctest::Approx(4).epsilon(0.02));
  CHECK(fit.law().exponent == doctest::Approx(0.6).epsilon(0.02));
}

TEST_CASE("the interval holds the true law in about 95 of 100 repetitions") {
  for (const ScaleLaw& law : {ScaleLaw{0.03, 0.06, 0.5}, ScaleLaw{0, 0.1, 0.35}, ScaleLaw{0.08, 0.02, 0.9}}) {
    int twice = 0, ten = 0;
    constexpr int repetitions = 60;
    for (int i = 0; i < repetitions; ++i) {
      const ScaleFit fit(drawn_points(law, 2, 0.04, static_cast<uint64_t>(100 + i)));
      const ScaleValue at_two = fit.at(2), at_ten = fit.at(10);
      twice += at_two.low <= law.at(2) && law.at(2) <= at_two.high;
      ten += at_ten.low <= law.at(10) && law.at(10) <= at_ten.high;
    }
    CAPTURE(law.exponent);
    // 95 % of 60 are 57 ± 1.7.
    CHECK(twice >= 52);
    CHECK(ten >= 52);
  }
}

TEST_CASE("one training that went wrong moves the law little") {
  const ScaleLaw law{0.02, 0.05, 0.5};
  auto points = drawn_points(law, 3, 0.01, 5);
  points[7].error = 0.9;
  const ScaleFit fit(points);
  CHECK(fit.at(2).value == doctest::Approx(law.at(2)).epsilon(0.15));
}

TEST_CASE("what a fit cannot say it says") {
  CHECK(ScaleFit(drawn_points({0.02, 0.05, 0.5}, 3, 0.01, 1, {0.25, 0.5, 1})).doubt().starts_with("too few"));
  CHECK(ScaleFit(drawn_points({0.2, 0, 1}, 2, 0.02, 1)).doubt().find("does not fall") != std::string::npos);
  CHECK(ScaleFit(drawn_points({0.02, 0.05, 0.5}, 1, 0.25, 4)).doubt() != "");
  const ScaleFit three(drawn_points({0.02, 0.05, 0.5}, 1, 0, 1, {0.25, 0.5, 1}));
  CHECK(three.at(2).low == 0);
  CHECK(std::isinf(three.at(2).high));
  CHECK_THROWS_AS(ScaleFit({}), InputError);
  const std::vector<ScalePoint> none{{1, 0}};
  CHECK_THROWS_AS(ScaleFit{none}, InputError);
}
