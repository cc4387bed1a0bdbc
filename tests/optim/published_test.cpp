#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>

#include "support/stored_steps.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

const StoredValues& published() {
  static const StoredValues all({
#include "optim/published_values.inc"
  });
  return all;
}

std::vector<double> all_parameters(nn::Module& model) {
  std::vector<double> all;
  for (const nn::Named& p : model.parameters())
    for (const double v : p.tensor->to_array().to_doubles()) all.push_back(v);
  return all;
}

struct PublishedCase {
  std::string name;
  double lr;
  std::shared_ptr<const optim::Optimizer> optimizer;
};

std::vector<PublishedCase> published_cases() {
  const optim::Options decay{.weight_decay = 0.1};
  return {{"rmsprop", 0.02, optim::rmsprop()},
          {"rmsprop centred", 0.02, optim::rmsprop({0.9, 1e-3, 0.8, true, decay})},
          {"nadam", 0.05, optim::nadam()},
          {"nadam decay", 0.05, optim::nadam({0.8, 0.9, 1e-8, 0.1, false, decay})},
          {"nadam decoupled", 0.05, optim::nadam({.decoupled = true, .common = decay})},
          {"radam", 0.05, optim::radam({.common = decay})},
          {"radam decoupled", 0.05, optim::radam({0.8, 0.95, 1e-8, true, decay})},
          {"lion", 0.3, optim::lion({.beta1 = 0.6, .common = decay})},
          {"lamb", 0.05, optim::lamb({.common = decay})},
          {"adafactor", 0.4, optim::adafactor({.common = decay})},
          {"adafactor clip", 0.2, optim::adafactor({-0.5, 0.5, 1.2, {}})},
          {"muon", 0.05, optim::muon({.match_adamw = false, .common = decay})},
          {"muon adamw", 0.05, optim::muon({.momentum = 0.8, .nesterov = false, .iterations = 3})},
          {"sam", 0.05, optim::sam(optim::sgd({.momentum = 0.9, .common = {.weight_decay = 0.05}}), 0.5)},
          {"sam adamw", 0.05, optim::sam(optim::adamw({.common = decay}), 0.2)}};
}

}  // namespace

TEST_CASE("optimisers make the steps that were published") {
  for (const PublishedCase& c : published_cases()) {
    CAPTURE(c.name);
    const auto model = published().model();
    const auto step = published().step(model, c.optimizer);
    const Stored& expected = published().at(c.name);
    for (const double loss : expected.curve) {
      step->run(c.lr);
      CHECK(step->loss() == doctest::Approx(loss).epsilon(2e-5));
    }
    const std::vector<double> final_values = all_parameters(*model);
    REQUIRE(final_values.size() == expected.values.size());
    for (size_t i = 0; i < final_values.size(); ++i)
      CHECK(final_values[i] == doctest::Approx(expected.values[i]).epsilon(1e-4).scale(1));
  }
}

TEST_CASE("published optimisers: verified steps agree with the reference") {
  for (const PublishedCase& c : published_cases()) {
    CAPTURE(c.name);
    const auto model = published().model();
    const auto step = published().step(model, c.optimizer);
    for (int i = 0; i < 8; ++i) CHECK(step->run_verified(c.lr) == "");
  }
}

TEST_CASE("published optimisers go on from their state and their count of steps to the same bits") {
  for (const PublishedCase& c : published_cases()) {
    CAPTURE(c.name);
    const auto model = published().model();
    const auto whole = published().step(model, c.optimizer);
    for (int i = 0; i < 4; ++i) whole->run(c.lr);
    const auto copy = published().model();
    const auto later = published().step(copy, c.optimizer);
    for (size_t i = 0; i < model->parameters().size(); ++i)
      *copy->parameters()[i].tensor = model->parameters()[i].tensor->to_array().clone();
    auto target = later->state();
    for (size_t i = 0; i < target.size(); ++i) target[i].second.assign(whole->state()[i].second);
    later->set_step(4);
    for (int i = 0; i < 4; ++i) {
      whole->run(c.lr);
      later->run(c.lr);
    }
    CHECK(all_parameters(*model) == all_parameters(*copy));
    CHECK(whole->loss() == later->loss());
  }
}

TEST_CASE("sam's second pass is accumulated as the first one, and leaves loss and metrics as they are") {
  const auto one = published().model(), parts = published().model();
  const auto optimizer = optim::sam(optim::sgd({.momentum = 0.9}), 0.5);
  const auto a = published().step(one, optimizer), b = published().step(parts, optimizer, {.accumulate = 3});
  for (int i = 0; i < 4; ++i) {
    a->run(0.05);
    b->run(0.05);
    CHECK(b->loss() == doctest::Approx(a->loss()).epsilon(1e-5));
  }
  const std::vector<double> expected = all_parameters(*one), found = all_parameters(*parts);
  for (size_t i = 0; i < expected.size(); ++i)
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-4).scale(1));
  CHECK_THROWS_WITH_AS(
      published().step(published().model(), optimizer, {.compile = {.precision = "bf16-pure"}}),
      doctest::Contains("sam looks a little beside the weights"), InputError);
}

TEST_CASE("what a matrix is: Adafactor keeps its means, Muon leaves to AdamW what it is told to") {
  const auto model = published().model();
  std::map<std::string, Shape> kept;
  for (const auto& [name, array] : published().step(model, optim::adafactor())->state())
    kept.emplace(name, array.type().shape);
  CHECK(kept.size() == 6);
  CHECK(kept.at("row_variance.0.weight") == Shape{3, 1});
  CHECK(kept.at("column_variance.0.weight") == Shape{1, 4});
  CHECK(kept.at("variance.0.bias") == Shape{3});
  kept.clear();
  const auto muon = optim::muon({.by_adamw = [](const std::string& name) { return name == "2.weight"; }});
  for (const auto& [name, array] : published().step(model, muon)->state())
    kept.emplace(name, array.type().shape);
  CHECK(kept.size() == 7);
  CHECK(kept.contains("momentum.0.weight"));
  CHECK(kept.contains("exp_avg_sq.2.weight"));
  CHECK_FALSE(kept.contains("momentum.2.weight"));
}

TEST_CASE("published optimisers refuse numbers that make none") {
  CHECK_THROWS_AS(optim::rmsprop({.alpha = 1}), InputError);
  CHECK_THROWS_AS(optim::rmsprop({.momentum = -1}), InputError);
  CHECK_THROWS_AS(optim::nadam({.beta1 = 0.99999}), InputError);
  CHECK_THROWS_AS(optim::radam({.epsilon = -1}), InputError);
  CHECK_THROWS_AS(optim::lion({.beta2 = 1}), InputError);
  CHECK_THROWS_AS(optim::lamb({.beta1 = -1}), InputError);
  CHECK_THROWS_AS(optim::adafactor({.clip = 0}), InputError);
  CHECK_THROWS_AS(optim::muon({.iterations = 0}), InputError);
  CHECK_THROWS_AS(optim::sam(optim::sgd(), 0), InputError);
  CHECK_THROWS_AS(optim::sam(nullptr), InputError);
}
