#include "task/calibrated.h"

#include <cmath>
#include <doctest/doctest.h>

#include "task/fake_task.h"

using namespace millrace;

namespace {

class LinkedOutput final : public testing::FakeClass {
 public:
  LinkedOutput(int64_t width, eval::Link link) : FakeClass("", width), link_(link) {}
  eval::Link link() const override { return link_; }

 private:
  eval::Link link_;
};

std::vector<float> calibrated_numbers(const task::Output& output, std::vector<double> logits) {
  const auto rows = static_cast<int64_t>(logits.size()) / output.width();
  const Array made =
      task::calibrated(output, Tensor(Array::of(f32, {rows, output.width()}, logits))).to_array();
  return {made.as<float>().begin(), made.as<float>().end()};
}

double sigmoid_of(double logit) { return 1 / (1 + std::exp(-logit)); }

/// Steep steps, level parts and points far from 0.
const eval::Curve steps{{-30, -2, -1.9999, 0, 0.5, 0.5001, 40}, {0.01, 0.01, 0.3, 0.3, 0.35, 0.9, 0.99}};

}  // namespace

TEST_CASE("calibrated logits have the probabilities of the curves, in the graph as on the host") {
  LinkedOutput labels(1, eval::Link::sigmoid), pair(2, eval::Link::softmax), three(3, eval::Link::softmax);
  labels.calibrate({.curves = {steps}});
  pair.calibrate({.curves = {steps}});
  three.calibrate({.curves = {steps, {{-3}, {0.2}}, steps}});
  const std::vector<double> places = {-100, -30, -29, -2, -1.99995, -1.5, 0, 0.25, 0.50005, 1, 39, 40, 1000};
  for (const double place : places) {
    CAPTURE(place);
    const double expected = steps.at(static_cast<float>(place));
    CHECK(sigmoid_of(calibrated_numbers(labels, {place})[0]) == doctest::Approx(expected).epsilon(2e-3));
    const auto both = calibrated_numbers(pair, {1, place + 1});
    CHECK(sigmoid_of(both[1] - both[0]) == doctest::Approx(expected).epsilon(2e-3));
    if (std::abs(place) > 50) continue;
    const std::vector<float> logits = {static_cast<float>(place), 0, 1};
    std::vector<double> shares;
    for (const int64_t c : {0, 1, 2}) shares.push_back(eval::log_probability(logits, c));
    shares = {steps.at(shares[0]), 0.2, steps.at(shares[2])};
    std::vector<double> told;
    eval::softmax(calibrated_numbers(three, {place, 0, 1}), told);
    for (size_t c = 0; c < 3; ++c)
      CHECK(told[c] == doctest::Approx(shares[c] / (shares[0] + shares[1] + shares[2])).epsilon(5e-3));
  }
}

TEST_CASE("a temperature divides, nothing changes nothing, and thresholds decide") {
  LinkedOutput pair(2, eval::Link::softmax), labels(2, eval::Link::sigmoid);
  CHECK(calibrated_numbers(pair, {1, 3}) == std::vector<float>{1, 3});
  CHECK(!task::decisions(pair, Tensor::zeros({1, 2})).defined());
  pair.calibrate({.temperature = 2, .thresholds = {sigmoid_of(1)}});
  CHECK(calibrated_numbers(pair, {1, 3}) == std::vector<float>{0.5F, 1.5F});
  const Array second = task::decisions(pair, Tensor::of({3, 2}, {0, 0.5, 0, 1.5, 2, 2.5})).to_array();
  CHECK(second.shape() == Shape{3});
  CHECK(std::vector<int64_t>(second.as<int64_t>().begin(), second.as<int64_t>().end()) ==
        std::vector<int64_t>{0, 1, 0});
  labels.calibrate({.thresholds = {0.9, 0.1}});
  const Array holds = task::decisions(labels, Tensor::of({1, 2}, {1, -1})).to_array();
  CHECK(holds.as<int64_t>()[0] == 0);
  CHECK(holds.as<int64_t>()[1] == 1);
}

TEST_CASE("a calibration reads back to the same bits, and one that does not fit is refused") {
  LinkedOutput pair(2, eval::Link::softmax), labels(3, eval::Link::sigmoid), number(1, eval::Link::none);
  const eval::Calibration made{.temperature = 1.0 / 3, .curves = {steps}, .thresholds = {0.1}};
  const eval::Calibration read = task::calibration_of(task::calibration_json(made), pair);
  CHECK(read.temperature == made.temperature);
  CHECK(read.curves.at(0).x == steps.x);
  CHECK(read.curves.at(0).y == steps.y);
  CHECK(read.thresholds == made.thresholds);
  for (const char* damaged :
       {"{", "[]", R"({"temperature": 0})", R"({"thresholds": [1, 2]})", R"({"thresholds": "x"})",
        R"({"isotonic": [{"x": [2, 1], "probability": [0, 1]}]})",
        R"({"isotonic": [{"x": [1], "probability": []}]})"}) {
    CAPTURE(damaged);
    CHECK_THROWS_AS(task::calibration_of(damaged, pair), InputError);
  }
  CHECK_THROWS_AS(task::calibration_of(task::calibration_json(made), labels), InputError);
  CHECK_THROWS_AS(task::calibration_of(R"({"temperature": 2})", number), InputError);
  CHECK(task::calibration_text({.temperature = 1.8321, .thresholds = {0.25}}) ==
        "temperature 1.832; threshold 0.25");
}
