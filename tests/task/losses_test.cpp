#include <cmath>
#include <doctest/doctest.h>

#include "task/loss.h"

using namespace millrace;

namespace {

/// The gradient of the mean loss by logits, beside finite differences of it.
void check_loss_gradient(const std::string& name, const Settings& settings, const std::vector<double>& logits,
                         const Tensor& targets, int64_t width) {
  const task::LossKind& kind = task::loss_kinds().at(name);
  const auto rows = static_cast<int64_t>(logits.size()) / width;
  const auto loss = [&](const std::vector<double>& at) {
    return static_cast<double>(
        kind.make(Tensor(Array::of(f32, {rows, width}, at)), targets, settings, true).item());
  };
  const Tensor x(Array::of(f32, {rows, width}, logits));
  const auto result = value_and_gradients(
      [&](std::span<const Tensor> arguments) { return kind.make(arguments[0], targets, settings, true); },
      std::span(&x, 1));
  const Array gradient = result.gradients[0].to_array();
  for (size_t i = 0; i < logits.size(); ++i) {
    std::vector<double> above = logits, below = logits;
    above[i] += 1e-2;
    below[i] -= 1e-2;
    CAPTURE(name);
    CAPTURE(i);
    CHECK(gradient.at(static_cast<int64_t>(i)) ==
          doctest::Approx((loss(above) - loss(below)) / 2e-2).epsilon(0.01));
  }
  // The mean is that of the rows.
  const Array each = kind.make(x, targets, settings, false).to_array();
  CHECK(each.shape() == Shape{rows});
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i) sum += each.at(i);
  CHECK(sum / static_cast<double>(rows) == doctest::Approx(loss(logits)));
}

Settings with(const std::string& name, const std::string& key, double value) {
  Settings settings(task::loss_kinds().at(name).settings);
  if (!key.empty()) settings.set(key, value);
  return settings;
}

double row_loss(const std::string& name, const Settings& settings, std::initializer_list<double> logits,
                const Tensor& targets) {
  const auto width = static_cast<int64_t>(logits.size());
  return task::loss_kinds()
      .at(name)
      .make(Tensor::of({1, width}, logits), targets, settings, false)
      .to_array()
      .at(0);
}

}  // namespace

TEST_CASE("losses have the gradients of finite differences, and their mean is that of their rows") {
  const std::vector<double> logits = {0.3, -1.2, 0.8, 2.1, -0.4, 0.15};
  const Tensor labels = Tensor::of({2}, {2, 0}, i64), numbers = Tensor::of({2, 3}, {0, 1, 1.4, -2, 0.5, 0}),
               holds = Tensor::of({2, 3}, {0, 1, 1, 1, 0, 0});
  check_loss_gradient("cross-entropy", with("cross-entropy", "", 0), logits, labels, 3);
  check_loss_gradient("cross-entropy", with("cross-entropy", "label_smoothing", 0.1), logits, labels, 3);
  check_loss_gradient("binary-cross-entropy", with("binary-cross-entropy", "", 0), logits, holds, 3);
  check_loss_gradient("mse", with("mse", "", 0), logits, numbers, 3);
  check_loss_gradient("huber", with("huber", "delta", 0.5), logits, numbers, 3);
  check_loss_gradient("quantile", with("quantile", "q", 0.8), logits, numbers, 3);
}

TEST_CASE("losses have the values of their formulas") {
  CHECK(row_loss("cross-entropy", with("cross-entropy", "", 0), {0, 0, 0, 0}, Tensor::of({1}, {1}, i64)) ==
        doctest::Approx(std::log(4.0)));
  CHECK(row_loss("binary-cross-entropy", with("binary-cross-entropy", "", 0), {0, 1},
                 Tensor::of({1, 2}, {1, 0})) ==
        doctest::Approx((std::log(2.0) + std::log1p(std::exp(1.0))) / 2));
  CHECK(row_loss("mse", with("mse", "", 0), {3}, Tensor::of({1, 1}, {1})) == doctest::Approx(4));
  CHECK(row_loss("huber", with("huber", "delta", 2), {5}, Tensor::of({1, 1}, {0})) ==
        doctest::Approx(2 * (5 - 1)));
  CHECK(row_loss("quantile", with("quantile", "q", 0.9), {1}, Tensor::of({1, 1}, {3})) ==
        doctest::Approx(1.8));
  CHECK(row_loss("quantile", with("quantile", "q", 0.9), {3}, Tensor::of({1, 1}, {1})) ==
        doctest::Approx(0.2));
}

TEST_CASE(
    "losses with weights of classes have the values of their formulas, and gradients of finite differences") {
  const std::vector<double> logits = {0.3, -1.2, 0.8, 2.1, -0.4, 0.15}, weights = {0.5, 3, 2};
  const Tensor labels = Tensor::of({2}, {2, 0}, i64), holds = Tensor::of({2, 3}, {0, 1, 1, 1, 0, 0});
  const Tensor w(Array::of(f32, {3}, weights));
  for (const double smoothing : {0.0, 0.1}) {
    // torch.nn.CrossEntropyLoss(weight, label_smoothing), by its documentation.
    double sum = 0, of_rows = 0;
    for (int r = 0; r < 2; ++r) {
      const double* x = logits.data() + 3 * r;
      const double all = std::log(std::exp(x[0]) + std::exp(x[1]) + std::exp(x[2]));
      const int label = r == 0 ? 2 : 0;
      sum += (1 - smoothing) * weights[static_cast<size_t>(label)] * (all - x[label]);
      for (int c = 0; c < 3; ++c) sum += smoothing / 3 * weights[static_cast<size_t>(c)] * (all - x[c]);
      of_rows += weights[static_cast<size_t>(label)];
    }
    const Settings settings = with("cross-entropy", "label_smoothing", smoothing);
    const auto loss = [&](const std::vector<double>& at) -> double {
      return task::loss_kinds()
          .at("cross-entropy")
          .weighted(Tensor(Array::of(f32, {2, 3}, at)), labels, w, settings, true)
          .item();
    };
    CHECK(loss(logits) == doctest::Approx(sum / of_rows));
    const Tensor x(Array::of(f32, {2, 3}, logits));
    const auto result = value_and_gradients(
        [&](std::span<const Tensor> given) {
          return task::loss_kinds().at("cross-entropy").weighted(given[0], labels, w, settings, true);
        },
        std::span(&x, 1));
    for (size_t i = 0; i < logits.size(); ++i) {
      std::vector<double> above = logits, below = logits;
      above[i] += 1e-2;
      below[i] -= 1e-2;
      CHECK(result.gradients[0].to_array().at(static_cast<int64_t>(i)) ==
            doctest::Approx((loss(above) - loss(below)) / 2e-2).epsilon(0.02));
    }
    const Array each =
        task::loss_kinds().at("cross-entropy").weighted(x, labels, w, settings, false).to_array();
    CHECK((each.at(0) + each.at(1)) / 2 == doctest::Approx(sum / of_rows));
  }
  // torch.nn.BCEWithLogitsLoss(pos_weight)
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool holding = i == 1 || i == 2 || i == 3;
    sum += holding ? weights[i % 3] * std::log1p(std::exp(-logits[i])) : std::log1p(std::exp(logits[i]));
  }
  const Settings none = with("binary-cross-entropy", "", 0);
  const Tensor x(Array::of(f32, {2, 3}, logits));
  CHECK(task::loss_kinds().at("binary-cross-entropy").weighted(x, holds, w, none, true).item() ==
        doctest::Approx(sum / 6));
  // A batch of nothing but classes that weigh nothing has no loss, and no NaN.
  const Tensor zero = Tensor::of({3}, {0, 1, 1});
  CHECK(task::loss_kinds()
            .at("cross-entropy")
            .weighted(Tensor::of({1, 3}, {1, 2, 3}), Tensor::of({1}, {0}, i64), zero,
                      with("cross-entropy", "", 0), true)
            .item() == 0);
}

TEST_CASE("losses of huge logits are finite") {
  CHECK(row_loss("cross-entropy", with("cross-entropy", "", 0), {1e30, -1e30}, Tensor::of({1}, {0}, i64)) ==
        0);
  CHECK(row_loss("binary-cross-entropy", with("binary-cross-entropy", "", 0), {1e30, -1e30},
                 Tensor::of({1, 2}, {1, 0})) == 0);
  CHECK(row_loss("huber", with("huber", "", 0), {1e30}, Tensor::of({1, 1}, {0})) == doctest::Approx(1e30));
}
