#include "eval/calibration.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/random.h>

#include "eval/metric.h"

using namespace millrace;
using namespace millrace::eval;

namespace {

double log_loss(const KeptRows& rows, double temperature) {
  KeptRows cooled = rows;
  for (float& logit : cooled.outputs) logit = static_cast<float>(logit / temperature);
  const auto metric = metric_kind("log-loss").init();
  metric->update(cooled.judged());
  return metric->finalize();
}

double value_at(const KeptRows& rows, const char* metric, double threshold) {
  const auto measured = metric_kind(metric).init();
  measured->update(rows.judged({&threshold, 1}));
  return measured->finalize();
}

double logit(double p) { return std::log(p / (1 - p)); }

}  // namespace

TEST_CASE("the temperature of the least log loss is found, be the logits too sure or not sure enough") {
  // shared/reference: T = 2.082917, log loss 0.675982 → 0.598086.
  const KeptRows rows{{2, 0, 0, 2, 3, 0, 0, 1, 1, 0, 2, 0}, 2, {0, 1, 1, 1, 0, 0}, {}};
  const double temperature = fit_temperature(rows);
  CHECK(temperature == doctest::Approx(2.082917).epsilon(1e-6));
  CHECK(log_loss(rows, 1) == doctest::Approx(0.675982).epsilon(1e-5));
  CHECK(log_loss(rows, temperature) == doctest::Approx(0.598086).epsilon(1e-5));
  KeptRows timid = rows;
  for (float& logit : timid.outputs) logit /= 64;
  CHECK(fit_temperature(timid) == doctest::Approx(temperature / 64).epsilon(1e-6));
  // The same as labels, where a class is one label's logit.
  const KeptRows labels{{-2, 2, -3, 1, -1, -2}, 1, {}, {0, 1, 1, 1, 0, 0}};
  CHECK(fit_temperature(labels) == doctest::Approx(temperature).epsilon(1e-9));
}

TEST_CASE("the temperature of three classes is a minimum, and that of rows that are all right the least") {
  KeptRows rows{{}, 3, {}, {}};
  for (uint32_t i = 0; i < 300; ++i) {
    const auto bits = philox({i, 0, 0, 0}, {8, 9});
    for (const int at : {0, 1, 2}) rows.outputs.push_back(static_cast<float>(bits[at] % 1000) / 100);
    rows.labels.push_back(bits[3] % 4 ? std::max_element(rows.outputs.end() - 3, rows.outputs.end()) -
                                            (rows.outputs.end() - 3)
                                      : bits[3] % 3);
  }
  const double temperature = fit_temperature(rows), least = log_loss(rows, temperature);
  CHECK(temperature > 1.1);
  CHECK(least < log_loss(rows, temperature * 1.02));
  CHECK(least < log_loss(rows, temperature * 0.98));
  CHECK(fit_temperature({{1, 0, 0, 1}, 2, {0, 1}, {}}) == doctest::Approx(1e-3));
  CHECK(fit_temperature({{1, 0, 0, 1}, 2, {1, 0}, {}}) == doctest::Approx(1e3));
}

TEST_CASE("isotonic curves are those of scikit-learn's IsotonicRegression(out_of_bounds='clip')") {
  const std::vector<double> places = {0, 1, 2, 3, 4, 5}, values = {1, 3, 2, 4, 3.5, 5};
  const Curve curve = fit_isotonic(places, values);
  const std::vector<double> expected = {1, 2.5, 2.5, 3.75, 3.75, 5};
  for (size_t i = 0; i < places.size(); ++i) CHECK(curve.at(places[i]) == doctest::Approx(expected[i]));
  const std::vector<double> x = {.8, .4, .1, .4, .1}, y = {1, 1, 0, 0, 1};  // in any order
  const Curve ties = fit_isotonic(x, y);
  CHECK(ties.x == std::vector<double>{.1, .4, .8});
  CHECK(ties.y == std::vector<double>{.5, .5, 1});
  CHECK(ties.at(.6) == doctest::Approx(.75));
  CHECK(ties.at(.05) == .5);
  CHECK(ties.at(.9) == 1);
  const Curve level = fit_isotonic(std::vector<double>{1, 2}, std::vector<double>{1, 0});
  CHECK(level.y == std::vector<double>{.5, .5});
}

TEST_CASE("curves of classes have no probability of 0 or 1, and one for each class or label") {
  const KeptRows pair{{0, -1, 0, 1, 0, 2, 0, -2}, 2, {0, 1, 1, 0}, {}};
  const std::vector<Curve> curves = fit_curves(pair);
  REQUIRE(curves.size() == 1);
  CHECK(curves[0].y.front() == 0.125);
  CHECK(curves[0].y.back() == 0.875);
  CHECK(curves[0].x == std::vector<double>{-2, -1, 1, 2});
  CHECK(fit_curves({{0, 1, 2, 2, 1, 0}, 3, {0, 2}, {}}).size() == 3);
  const std::vector<Curve> labels = fit_curves({{1, -1, -3, 4}, 2, {}, {1, 0, 0, 1}});
  REQUIRE(labels.size() == 2);
  CHECK(labels[1].x == std::vector<double>{-1, 4});
  CHECK_THROWS_AS(fit_curves({{NAN, 1}, 2, {0}, {}}), InputError);
}

TEST_CASE("thresholds are the best of all places between scores") {
  for (const uint32_t seed : {1U, 2U, 3U}) {
    KeptRows rows{{}, 2, {}, {}};
    for (uint32_t i = 0; i < 1500; ++i) {
      const auto bits = philox({i, seed, 0, 0}, {8, 9});
      const int64_t label = bits[0] % 7 == 0;
      rows.labels.push_back(label);
      rows.outputs.insert(rows.outputs.end(),
                          {0, static_cast<float>(bits[1] % 4000) / 1000 + static_cast<float>(label) - 4});
    }
    for (const char* metric : {"f1", "matthews", "macro-recall"}) {
      CAPTURE(metric);
      const std::vector<double> tuned = tune_thresholds(rows, metric_kind(metric));
      REQUIRE(tuned.size() == 1);
      double best = -1;
      for (int i = 0; i < 1000; ++i) best = std::max(best, value_at(rows, metric, -4.0005 + 0.005 * i));
      CHECK(value_at(rows, metric, logit(tuned[0])) >= value_at(rows, metric, 0));
      CHECK(value_at(rows, metric, logit(tuned[0])) >= best - 0.003);
    }
    CHECK(Calibration{.thresholds = {0.5}}.logit_thresholds() == std::vector<double>{0});
    CHECK_THROWS_WITH_AS(tune_thresholds(rows, metric_kind("log-loss")),
                         doctest::Contains("the same at every threshold"), InputError);
  }
}

TEST_CASE("each label has its own threshold, and one that says nothing the usual one") {
  const KeptRows rows{{-3, 2, 0, -2, 3, 0, -1, 4, 0, -4, 5, 0}, 3, {}, {0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1}};
  const std::vector<double> tuned = tune_thresholds(rows, metric_kind("f1"));
  REQUIRE(tuned.size() == 3);
  CHECK(logit(tuned[0]) == doctest::Approx(-2.5));
  CHECK(logit(tuned[1]) == doctest::Approx(3.5));
  CHECK(tuned[2] == 0.5);
}
