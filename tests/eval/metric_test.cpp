#include "eval/metric.h"

#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>

using namespace millrace;
using namespace millrace::eval;

namespace {

double value(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, number] : metrics.values())
    if (key == name) return number;
  return NAN;
}

}  // namespace

TEST_CASE("metrics of a small table agree with scikit-learn's") {
  // accuracy_score, log_loss, top_k_accuracy_score(k=5) of these logits; log-loss from scipy.special.log_softmax.
  const std::vector<float> logits = {2, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 1, 5, 2, 3, 4};
  const std::vector<int64_t> labels = {0, 0, 0};
  Metrics metrics({"accuracy", "log-loss", "top-5", "ece"});
  metrics.add(logits, labels);
  CHECK(metrics.count() == 3);
  CHECK(value(metrics, "accuracy") == doctest::Approx(1.0 / 3));
  CHECK(value(metrics, "top-5") == doctest::Approx(2.0 / 3));
  const double expected =
      (-2 + std::log(std::exp(2.0) + 5) - 1 + std::log(std::exp(1.0) + std::exp(3.0) + 4) - 0 +
       std::log(1 + std::exp(1.0) + std::exp(5.0) + std::exp(2.0) + std::exp(3.0) + std::exp(4.0))) /
      3;
  CHECK(value(metrics, "log-loss") == doctest::Approx(expected));
}

TEST_CASE("log-loss stays exact where a probability underflows") {
  Metrics metrics({"log-loss"});
  metrics.add(std::vector<float>{2000, 0}, std::vector<int64_t>{1});
  CHECK(value(metrics, "log-loss") == doctest::Approx(2000));
}

TEST_CASE("a calibrated predictor has no calibration error, an overconfident one its excess") {
  const auto logit = [](double p) { return static_cast<float>(std::log(p / (1 - p))); };
  Metrics calibrated({"ece"}), sure({"ece"});
  for (int i = 0; i < 10; ++i) {
    calibrated.add(std::vector<float>{logit(0.7), 0}, std::vector<int64_t>{i < 7 ? 0 : 1});
    sure.add(std::vector<float>{logit(0.9), 0}, std::vector<int64_t>{i < 7 ? 0 : 1});
  }
  CHECK(value(calibrated, "ece") == doctest::Approx(0).epsilon(1e-6));
  CHECK(value(sure, "ece") == doctest::Approx(0.2));
}

TEST_CASE("Wilson's interval is that of the literature, unknown metrics name the nearest") {
  const auto [low, high] = wilson_interval(0.9, 10);
  CHECK(low == doctest::Approx(0.5958).epsilon(1e-3));
  CHECK(high == doctest::Approx(0.9821).epsilon(1e-3));
  CHECK(wilson_interval(1, 50).second == 1);
  CHECK_THROWS_WITH_AS(metric_kind("acuracy"), doctest::Contains("did you mean 'accuracy'"), InputError);
}
