#include "nn/models/fitted.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

#include "nn/models/architecture.h"

using namespace millrace;

namespace {

Array numbers_of(const Shape& shape, const std::vector<double>& values) {
  return Array::of(f32, shape, values);
}

/// Eight rows of two numbers and two categories of three ids.
nn::FitData few_rows(nn::Predicted predicted, const Array& targets, int64_t width) {
  nn::FitData data;
  data.training.inputs = {
      numbers_of({8, 2}, {.5, -1.2, 1.1, .3, -.7, .8, -1.5, -.4, .2, 2., .9, 1.6, -.3, -2.1, 1.8, .1}),
      Array::of(i64, {8, 2}, std::vector<double>{0, 1, 1, 2, 2, 1, 1, 1, 0, 0, 2, 2, 1, 0, 0, 2})};
  data.training.targets = targets;
  data.training.count = 8;
  data.predicted = predicted;
  data.width = width;
  return data;
}
Array three_classes() { return Array::of(i64, {8}, std::vector<double>{0, 1, 2, 0, 1, 1, 2, 0}); }

nn::Model made(const std::string& kind, int64_t outputs,
               const std::vector<std::pair<std::string, SettingValue>>& settings = {}) {
  const nn::Architecture& architecture = nn::architectures().at(kind);
  Settings chosen(architecture.settings);
  for (const auto& [key, value] : settings) chosen.set(key, value);
  nn::Model model = architecture.make(kind, chosen, {.classes = outputs, .numbers = 2, .ids = {3, 3}});
  model.module->initialise(1);
  return model;
}

nn::Fitted& fitted_to(const nn::Model& model, nn::FitData data) {
  auto& module = dynamic_cast<nn::Fitted&>(*model.module);
  const auto fitting = module.fit(std::move(data));
  for (int64_t i = 0; i < fitting->rounds(); ++i) fitting->round();
  fitting->store(fitting->rounds());
  module.check();
  return module;
}

/// Of three more rows.
Tensor told(nn::Fitted& module) {
  const Tensor rows[] = {Tensor(numbers_of({3, 2}, {0, 0, 1, -1, -2, .5})),
                         Tensor(Array::of(i64, {3, 2}, std::vector<double>{0, 0, 1, 2, 2, 1}))};
  return module(rows);
}

void check_near(const Tensor& found, const std::vector<double>& expected, double tolerance = 2e-6) {
  const std::vector<double> values = found.to_array().to_doubles();
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])));
  }
}

}  // namespace

// Values of scikit-learn 1.9.1: GaussianNB and CategoricalNB(min_categories = [3, 3]), their joint
// log-likelihoods added and one prior taken away.
TEST_CASE("naive Bayes gives scikit-learn's joint likelihoods, with weights of rows and without") {
  nn::FitData data = few_rows(nn::Predicted::classes, three_classes(), 3);
  check_near(
      told(fitted_to(made("naive_bayes", 3), data)),
      {-5.439729, -7.15346, -7.737501, -5.278705, -8.598552, -32.666157, -8.123019, -30.133354, -32.258384});
  data.training.weights = {1, 2, 1, 1, .5, 1, 3, 1};
  check_near(
      told(fitted_to(made("naive_bayes", 3), data)),
      {-5.711662, -9.668494, -7.049079, -5.550639, -6.251498, -36.494182, -8.394953, -50.467114, -47.564336});
  const Array labels = numbers_of({8, 2}, {1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 1});
  check_near(told(fitted_to(made("naive_bayes", 2), few_rows(nn::Predicted::labels, labels, 2))),
             {1.952901, -.384967, -2.597759, 1.711113, -6.050451, -1.0561});
}

TEST_CASE("naive Bayes: a class without rows is not told, and numbers are not told at all") {
  const nn::Model model = made("naive_bayes", 4);
  const Array found = told(fitted_to(model, few_rows(nn::Predicted::classes, three_classes(), 4))).to_array();
  for (int64_t row = 0; row < 3; ++row) {
    CHECK(std::isfinite(found.at(4 * row + 3)));
    CHECK(found.at(4 * row + 3) < found.at(4 * row) - 20);
  }
  CHECK_THROWS_WITH_AS(
      fitted_to(made("naive_bayes", 1),
                few_rows(nn::Predicted::numbers, numbers_of({8, 1}, {1, 2, 3, 4, 5, 6, 7, 8}), 1)),
      doctest::Contains("tells classes and labels, not numbers"), InputError);
}

// KNeighborsClassifier and KNeighborsRegressor of scikit-learn 1.9.1, of the numbers and one column for each
// id.
TEST_CASE("nearest neighbours give scikit-learn's shares and means") {
  const nn::FitData data = few_rows(nn::Predicted::classes, three_classes(), 3);
  const std::vector<std::pair<std::string, SettingValue>> three = {{"neighbours", int64_t{3}}};
  auto by_distance = three;
  by_distance.emplace_back("weights", std::string("distance"));
  check_near(softmax(told(fitted_to(made("nearest_neighbours", 3, three), data))),
             {.333333, .333333, .333333, .666667, .333333, 0, .333333, .333333, .333333});
  check_near(softmax(told(fitted_to(made("nearest_neighbours", 3, by_distance), data))),
             {.356657, .340858, .302486, .56408, .43592, 0, .352556, .185192, .462252});
  nn::FitData numbers =
      few_rows(nn::Predicted::numbers, numbers_of({8, 1}, {0, 1.5, 3, 0, 1.5, 1.5, 3, 0}), 1);
  check_near(told(fitted_to(made("nearest_neighbours", 1, three), numbers)), {1.5, .5, 1.5});
  check_near(told(fitted_to(made("nearest_neighbours", 1, by_distance), numbers)),
             {1.418744, .65388, 1.664544});
  // Rows of weight 0 are as if they were not there, and never all that there is to tell by.
  nn::FitData weighted = numbers;
  weighted.training.weights = {1, 0, 1, 1, 0, 1, 0, 1};
  const auto one = made("nearest_neighbours", 1, {{"neighbours", int64_t{1}}});
  const Array told_one = told(fitted_to(one, weighted)).to_array();
  for (int64_t row = 0; row < 3; ++row) CHECK(std::isfinite(told_one.at(row)));
  check_near(told(fitted_to(made("nearest_neighbours", 1, {{"neighbours", int64_t{100}}}), weighted)),
             {.9, .9, .9});
  // More neighbours than there are rows: all of them.
  check_near(told(fitted_to(made("nearest_neighbours", 1, {{"neighbours", int64_t{100}}}), numbers)),
             {1.3125, 1.3125, 1.3125});
}

TEST_CASE("what a checkpoint gives must hang together") {
  for (const char* kind : {"naive_bayes", "nearest_neighbours"}) {
    CAPTURE(kind);
    const nn::Model model = made(kind, 3);
    auto& module = fitted_to(model, few_rows(nn::Predicted::classes, three_classes(), 3));
    for (const nn::Named& named : module.buffers()) {
      if (named.tensor->rank() == 0) continue;
      CAPTURE(named.name);
      const Tensor whole = *named.tensor;
      Shape shape = whole.shape();
      shape[0] = shape[0].size() + 1;
      *named.tensor = Tensor(Array(whole.dtype(), shape));
      CHECK_THROWS_AS(module.check(), InputError);
      *named.tensor = whole;
    }
    CHECK_NOTHROW(module.check());
  }
}
