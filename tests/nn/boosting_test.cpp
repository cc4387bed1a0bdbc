#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <set>

#include <millrace/error.h>

#include "nn/models/architecture.h"
#include "nn/models/fitted.h"

using namespace millrace;

namespace {

using Chosen = std::vector<std::pair<std::string, SettingValue>>;

nn::Model boosted_model(int64_t outputs, int64_t columns, const Chosen& settings) {
  const nn::Architecture& architecture = nn::architectures().at("boosting");
  Settings chosen(architecture.settings);
  for (const auto& [key, value] : settings) chosen.set(key, value);
  nn::Model model = architecture.make("boosting", chosen, {.classes = outputs, .numbers = columns});
  model.module->initialise(1);
  return model;
}

nn::FitData boosted_data(const Array& x, const Array& targets, nn::Predicted predicted, int64_t width) {
  nn::FitData data;
  data.training = {{x}, targets, {}, x.shape()[0].size()};
  data.tests = data.training;
  data.predicted = predicted;
  data.width = width;
  return data;
}

nn::Fitted& fitted_of(const nn::Model& model) { return dynamic_cast<nn::Fitted&>(*model.module); }

/// All rounds; the module's logits of `x`.
std::vector<double> boosted_logits(const nn::Model& model, nn::FitData data, const Array& x) {
  nn::Fitted& module = fitted_of(model);
  const auto fitting = module.fit(std::move(data));
  for (int64_t i = 0; i < fitting->rounds(); ++i) fitting->round();
  fitting->store(fitting->rounds());
  module.check();
  const Tensor rows(x);
  return module({&rows, 1}).to_array().to_doubles();
}

/// 24 rows of three numbers and what goes with them, by formula; and three more rows.
struct ByFormula {
  Array x{f32, {24, 3}}, classes{i64, {24}}, positive{i64, {24}}, labels{f32, {24, 2}}, numbers{f32, {24, 1}};
  std::vector<float> weights;
  Array more = Array::of(f32, {3, 3}, std::vector<double>{0, 0, 0, 1.5, -1, 2, -2, 1, .4});

  ByFormula() {
    for (int64_t i = 0; i < 24; ++i) {
      const auto a = static_cast<float>(i * 7 % 24 / 4.0 - 3), b = static_cast<float>(i * 5 % 13 / 3.0 - 2),
                 c = static_cast<float>(i * 11 % 17 / 5.0 - 1);
      x.set(3 * i, a);
      x.set(3 * i + 1, b);
      x.set(3 * i + 2, c);
      classes.set_int(i, (a > 0) + (b > .3f));
      positive.set_int(i, classes.int_at(i) > 0);
      labels.set(2 * i, a > b);
      labels.set(2 * i + 1, c > .5f);
      numbers.set(i, a * b + c);
      weights.push_back(static_cast<float>(1 + i % 3));
    }
  }
};

const Chosen some_settings = {{"rounds", int64_t{5}},   {"learning_rate", .4}, {"max_depth", int64_t{3}},
                              {"min_child_weight", .5}, {"gamma", .01},        {"alpha", .02},
                              {"max_bin", int64_t{16}}};

void check_close(const std::vector<double>& found, const std::vector<double>& expected,
                 double tolerance = 2e-6) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(found[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])));
  }
}

}  // namespace

TEST_CASE("boosting: one split, twice, with a missing value") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Array x = Array::of(f32, {6, 2}, std::vector<double>{0, 1, 1, 0, 2, 3, 3, none, 4, 1, 5, 2}),
              y = Array::of(i64, {6}, std::vector<double>{0, 0, 0, 1, 1, 1});
  const nn::Model model = boosted_model(2, 2,
                                        {{"rounds", int64_t{2}},
                                         {"max_depth", int64_t{1}},
                                         {"learning_rate", .5},
                                         {"min_child_weight", 0.0},
                                         {"tree_method", std::string("exact")}});
  const auto logits = boosted_logits(model, boosted_data(x, y, nn::Predicted::classes, 2), x);
  for (size_t row = 0; row < 6; ++row) {
    const double p = 1 / (1 + std::exp(logits[2 * row] - logits[2 * row + 1]));
    CHECK(std::abs(p - (row < 3 ? .31577274 : .6842273)) < 1e-7);
  }
  nn::Fitted& module = fitted_of(model);
  const std::vector<double> threshold = module.find("threshold")->to_array().to_doubles(),
                            column = module.find("column")->to_array().to_doubles();
  REQUIRE(threshold.size() == 6);
  CHECK(threshold[0] == 2.5);
  CHECK(column[0] == 0);
  CHECK(std::abs(threshold[1] + .42857143) < 1e-7);
  CHECK(std::abs(threshold[2] - .42857143) < 1e-7);
}

// Margins of XGBoost 1.7.6 (Python): hist with the settings above, objectives binary:logistic, multi:softprob
// and reg:squarederror, whose base_score is the mean.
TEST_CASE("boosting gives XGBoost's own values") {
  const ByFormula f;
  const auto logits = [&](int64_t width, const Array& targets, nn::Predicted predicted,
                          bool weighted = false) {
    nn::FitData data = boosted_data(f.x, targets, predicted, width);
    if (weighted) data.training.weights = f.weights;
    return boosted_logits(boosted_model(width, 3, some_settings), std::move(data), f.more);
  };
  using enum nn::Predicted;
  check_close(logits(2, f.positive, classes), {0, 1.8064845, 0, 1.8064845, 0, 1.5143847});
  // XGBoost's margins of several classes begin at 0.5.
  const auto less_half = [](std::vector<double> margins) {
    for (double& each : margins) each -= .5;
    return margins;
  };
  check_close(logits(3, f.classes, classes),
              less_half({-.5112846, 1.1561787, -.52690756, -.5112846, 1.4960992, -.3437412, -.33735192,
                         1.3775852, -.52690756}));
  check_close(logits(3, f.classes, classes, true),
              less_half({-.6247783, 1.2370288, -.6143647, -.6247783, 1.4736105, -.42712325, -.3804704,
                         1.3710423, -.6143647}));
  check_close(logits(2, f.labels, labels),
              {-1.5067139, -1.9848306, 1.8605217, 2.0618124, -1.9579159, -1.9848306});
  check_close(logits(1, f.numbers, numbers), {.30726933, .93259346, .8364638});
  check_close(logits(1, f.numbers, numbers, true), {.20073655, 1.4244568, .20073655});
}

TEST_CASE("boosting: by derivatives of the same loss come the same trees") {
  const ByFormula f;
  nn::FitData data = boosted_data(f.x, f.positive, nn::Predicted::classes, 2);
  const auto usual = boosted_logits(boosted_model(2, 3, some_settings), data, f.more);
  data.gradient = [&](const Array& logits) {
    Array first(logits.type()), second(logits.type());
    for (int64_t row = 0; row < 24; ++row) {
      const double p = 1 / (1 + std::exp(logits.at(2 * row) - logits.at(2 * row + 1)));
      first.set(2 * row + 1, p - static_cast<double>(f.positive.int_at(row)));
      second.set(2 * row + 1, p * (1 - p));
    }
    return std::pair(first, second);
  };
  check_close(boosted_logits(boosted_model(2, 3, some_settings), data, f.more), usual, 1e-5);
}

TEST_CASE("boosting goes on with the same bits, whatever it samples, and knows its logits on the way") {
  const ByFormula f;
  Chosen sampling = some_settings;
  sampling.insert(sampling.end(), {{"subsample", .7}, {"colsample_bytree", .7}, {"colsample_bynode", .7}});
  for (const auto& [width, targets, predicted] : std::vector<std::tuple<int64_t, Array, nn::Predicted>>{
           {3, f.classes, nn::Predicted::classes}, {1, f.numbers, nn::Predicted::numbers}}) {
    const nn::FitData data = boosted_data(f.x, targets, predicted, width);
    const nn::Model whole = boosted_model(width, 3, sampling), parts = boosted_model(width, 3, sampling);
    const auto fitting = fitted_of(whole).fit(data);
    for (int i = 0; i < 5; ++i) fitting->round();
    fitting->store(5);
    {
      const auto first = fitted_of(parts).fit(data);
      for (int i = 0; i < 2; ++i) first->round();
      first->store(2);
    }
    const auto second = fitted_of(parts).fit(data);
    second->resume(2);
    for (int i = 2; i < 5; ++i) second->round();
    second->store(5);
    const auto one = fitted_of(whole).buffers(), other = fitted_of(parts).buffers();
    for (size_t i = 0; i < one.size(); ++i) {
      CAPTURE(one[i].name);
      CHECK(one[i].tensor->to_array().identical(other[i].tensor->to_array()));
    }
    const Tensor rows(f.x);
    CHECK(fitted_of(whole)({&rows, 1}).to_array().identical(*second->logits(false)));
    CHECK(second->logits(true)->identical(*second->logits(false)));
    // Another seed takes other rows.
    nn::FitData reseeded = data;
    reseeded.seed = 2;
    CHECK(boosted_logits(boosted_model(width, 3, sampling), reseeded, f.x) !=
          second->logits(false)->to_doubles());
  }
}

TEST_CASE("boosting: roots that are not there, or do not follow each other, are no trees to go on from") {
  const ByFormula f;
  const nn::FitData data = boosted_data(f.x, f.numbers, nn::Predicted::numbers, 1);
  const nn::Model model = boosted_model(1, 3, some_settings);
  const auto fitting = fitted_of(model).fit(data);
  for (int i = 0; i < 3; ++i) fitting->round();
  fitting->store(3);
  Tensor& roots = *fitted_of(model).find("root");
  const Array right = roots.to_array();
  const int64_t nodes = fitted_of(model).find("left")->to_array().count();
  for (const int64_t wrong : {int64_t{-1}, int64_t{0}, right.int_at(1), nodes, nodes + 1000000}) {
    CAPTURE(wrong);
    Array damaged = right.clone();
    damaged.set_int(2, wrong);
    roots = Tensor(damaged);
    CHECK_THROWS_WITH_AS(fitted_of(model).fit(data)->resume(3), doctest::Contains("tree 2 is damaged"),
                         InputError);
  }
  roots = Tensor(right);
  fitted_of(model).fit(data)->resume(3);
}

TEST_CASE("boosting: each round looks at rows of its own") {
  const ByFormula f;
  const nn::Model model = boosted_model(1, 3,
                                        {{"rounds", int64_t{2}},
                                         {"learning_rate", 1.0},
                                         {"max_depth", int64_t{12}},
                                         {"min_child_weight", 0.0},
                                         {"lambda", 0.0},
                                         {"subsample", .5}});
  (void)boosted_logits(model, boosted_data(f.x, f.numbers, nn::Predicted::numbers, 1), f.x);
  // The first tree gives the rows that it saw exactly: of the same ones a second would learn nothing.
  const int64_t nodes = fitted_of(model).find("left")->to_array().count();
  CHECK(nodes - fitted_of(model).find("root")->to_array().int_at(1) > 3);
}

TEST_CASE("boosting: missing values go the ways that they went in training, one row or many at once") {
  const ByFormula f;
  Array x = f.x.clone();
  for (int64_t i = 0; i < x.count(); i += 5) x.set(i, std::numeric_limits<double>::quiet_NaN());
  const nn::Model model = boosted_model(1, 3, some_settings);
  const auto fitting = fitted_of(model).fit(boosted_data(x, f.numbers, nn::Predicted::numbers, 1));
  for (int i = 0; i < 5; ++i) fitting->round();
  fitting->store(5);
  const Array known = fitting->logits(false)->clone();
  const Tensor all(x);
  CHECK(fitted_of(model)({&all, 1}).to_array().identical(known));
  std::set<double> ways;
  const Array missing = fitted_of(model).find("missing")->to_array();
  for (int64_t row = 0; row < 24; ++row) {
    Array one(f32, {1, 3});
    for (int64_t c = 0; c < 3; ++c) one.set(c, x.at(3 * row + c));
    const Tensor alone(one);
    CHECK(fitted_of(model)({&alone, 1}).to_array().at(0) == known.at(row));
  }
  for (const double way : missing.to_doubles()) ways.insert(way);
  CHECK(ways.size() == 2);
}

TEST_CASE("boosting: fewer rounds are the first ones") {
  const ByFormula f;
  const nn::Model model = boosted_model(1, 3, some_settings);
  const auto fitting = fitted_of(model).fit(boosted_data(f.x, f.numbers, nn::Predicted::numbers, 1));
  const Tensor rows(f.x);
  fitting->store(0);
  std::vector<Array> after = {fitted_of(model)({&rows, 1}).to_array()};
  CHECK(after[0].identical(*fitting->logits(false)));
  for (int i = 0; i < 4; ++i) {
    fitting->round();
    after.push_back(fitting->logits(false)->clone());
  }
  for (int64_t rounds = 0; rounds <= 4; ++rounds) {
    fitting->store(rounds);
    CHECK(fitted_of(model)({&rows, 1}).to_array().identical(after[static_cast<size_t>(rounds)]));
  }
}

TEST_CASE("boosting: what cannot be learnt is said") {
  const ByFormula f;
  CHECK_THROWS_WITH_AS(
      fitted_of(boosted_model(1, 3, {})).fit(boosted_data(f.x, Array(i64, {24}), nn::Predicted::classes, 1)),
      doctest::Contains("only one class"), InputError);
  // One row, and a class without any.
  const Array row = Array::of(f32, {1, 3}, std::vector<double>{1, 2, 3});
  for (const double value :
       boosted_logits(boosted_model(4, 3, some_settings),
                      boosted_data(row, Array(i64, {1}), nn::Predicted::classes, 4), row))
    CHECK(std::isfinite(value));
  const nn::Model model = boosted_model(3, 3, {});
  nn::Fitted& module = fitted_of(model);
  *module.find("left") = Tensor(Array(i32, {7}));
  CHECK_THROWS_AS(module.check(), InputError);
}
