#include "task/loss_derivatives.h"

#include <cmath>
#include <doctest/doctest.h>

#include "task/fake_task.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

class SoftClass : public FakeClass {
 public:
  using FakeClass::FakeClass;
  eval::Link link() const override { return eval::Link::softmax; }
  Tensor loss(const Tensor& logits, const Tensor& targets, bool mean) const override {
    return FakeClass::loss(logits, targets, mean) * factor;
  }
  double factor = 1;
};

/// Its error as it is, not its square.
class Straight : public FakeNumber {
 public:
  using FakeNumber::FakeNumber;
  Tensor loss(const Tensor& logits, const Tensor& targets, bool mean) const override {
    const Tensor each = abs(logits - targets).mean({1});
    return mean ? each.mean() : each;
  }
};

Array labels_of(int64_t rows, int64_t classes) {
  Array labels(i64, {rows});
  for (int64_t i = 0; i < rows; ++i) labels.set_int(i, i * 7 % classes);
  return labels;
}

}  // namespace

TEST_CASE("derivatives of cross-entropy are those of softmax, whatever it is multiplied by") {
  SoftClass output("", 3);
  output.factor = 2.5;
  const Array labels = labels_of(4, 3);
  Array logits(f32, {4, 3});
  for (int64_t i = 0; i < 12; ++i) logits.set(i, std::sin(static_cast<double>(i)));
  task::LossDerivatives derivatives(output, labels);
  const auto [first, second] = derivatives(logits);
  for (int64_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (int64_t k = 0; k < 3; ++k) sum += std::exp(logits.at(3 * row + k));
    for (int64_t k = 0; k < 3; ++k) {
      const double p = std::exp(logits.at(3 * row + k)) / sum;
      CHECK(first.at(3 * row + k) == doctest::Approx(2.5 * (p - (labels.int_at(row) == k))).epsilon(1e-5));
      CHECK(second.at(3 * row + k) == doctest::Approx(2.5 * p * (1 - p)).epsilon(1e-5));
    }
  }
}

TEST_CASE("a loss of straight lines is gone down by steps of its first derivative") {
  const Straight output("");
  Array targets(f32, {2, 1}), logits(f32, {2, 1});
  logits.set(0, 3);
  logits.set(1, -3);
  const auto [first, second] = task::LossDerivatives(output, targets)(logits);
  CHECK(first.to_doubles() == std::vector<double>{1, -1});
  CHECK(second.to_doubles() == std::vector<double>{1, 1});
}

TEST_CASE("what is the usual loss is found by its derivatives") {
  SoftClass classes("", 4);
  const Array labels = labels_of(50, 4);
  CHECK(task::is_usual_loss(classes, labels));
  classes.factor = 3;
  CHECK(task::is_usual_loss(classes, labels));
  classes.factor = -1;
  CHECK_FALSE(task::is_usual_loss(classes, labels));
  classes.factor = 1;
  classes.smoothing = 0.1;
  CHECK_FALSE(task::is_usual_loss(classes, labels));
  Array numbers(f32, {50, 1});
  for (int64_t i = 0; i < 50; ++i) numbers.set(i, std::cos(static_cast<double>(i)));
  CHECK(task::is_usual_loss(FakeNumber(""), numbers));
  CHECK_FALSE(task::is_usual_loss(Straight(""), numbers));
  // Of one row, too.
  CHECK(task::is_usual_loss(FakeNumber(""), Array(f32, {1, 1})));
}

TEST_CASE("second derivatives of very many logits are refused") {
  CHECK_THROWS_WITH_AS(task::LossDerivatives(SoftClass("", 100), labels_of(5, 100)),
                       doctest::Contains("of 64 at most"), InputError);
}
