#include "optim/kinds.h"

#include <cmath>
#include <doctest/doctest.h>
#include <set>

#include <millrace/error.h>

using namespace millrace;

namespace {

/// A convolution with batch norm, a linear layer: weights, biases, and norms.
std::shared_ptr<nn::Module> kinds_model() {
  const nn::Model model =
      nn::make_layers({"conv 3 3", "batch-norm", "relu", "flatten", "linear 2"}, {1, 4, 4});
  model.module->initialise(7);
  return model.module;
}

/// All parameters after three steps on fixed data.
std::vector<double> kinds_trained(const std::shared_ptr<nn::Module>& model,
                                  const std::shared_ptr<const optim::Optimizer>& optimizer) {
  optim::TrainStep step(
      model, {{"x", {f32, {5, 1, 4, 4}}}, {"y", {f32, {5, 2}}}},
      [](nn::Module& module, std::span<const Tensor> in) {
        return optim::StepResult{mse_loss(module(in[0]), in[1])};
      },
      optimizer);
  nn::init::normal(0, 1)(step.input(0), 1, "x");
  nn::init::normal(0, 1)(step.input(1), 1, "y");
  for (int i = 0; i < 3; ++i) step.run(0.05);
  std::vector<double> all;
  for (const nn::Named& p : model->parameters())
    for (const double value : p.tensor->to_array().to_doubles()) all.push_back(value);
  return all;
}

Settings optimizer_by(const std::string& name,
                      const std::vector<std::pair<std::string, SettingValue>>& given) {
  Settings settings(optim::optimizer_settings(optim::optimizer_kinds().at(name)));
  for (const auto& [key, value] : given) settings.set(key, value);
  return settings;
}

std::shared_ptr<const optim::Optimizer> made_optimizer(
    const std::string& name, const std::vector<std::pair<std::string, SettingValue>>& given,
    nn::Module& model, double clip_norm = 0, double clip_value = 0) {
  return optim::make_optimizer(optim::optimizer_kinds().at(name), optimizer_by(name, given), clip_norm,
                               clip_value, model);
}

optim::Schedule schedule_by(const std::string& name,
                            const std::vector<std::pair<std::string, SettingValue>>& given) {
  const optim::ScheduleKind& kind = optim::schedule_kinds().at(name);
  Settings settings(kind.settings);
  for (const auto& [key, value] : given) settings.set(key, value);
  return kind.make(settings, {.lr = 0.4, .steps_per_epoch = 10, .total_steps = 50});
}

void check_same_rates(const optim::Schedule& a, const optim::Schedule& b) {
  for (const int64_t step : {0, 1, 4, 9, 10, 15, 25, 37, 49, 50, 60}) {
    CAPTURE(step);
    CHECK(a(step) == b(step));
  }
}

}  // namespace

TEST_CASE("every optimiser and schedule is found, described, and made with what it usually has") {
  const std::vector<std::string> optimizers = optim::optimizer_kinds().names(),
                                 schedules = optim::schedule_kinds().names();
  CHECK(std::set(optimizers.begin(), optimizers.end()) ==
        std::set<std::string>{"sgd", "adam", "adamw", "adagrad", "lazy-sgd", "lazy-adam", "lazy-adamw"});
  CHECK(std::set(schedules.begin(), schedules.end()) ==
        std::set<std::string>{"constant", "step", "cosine", "one-cycle", "triangle", "linear"});
  const auto model = kinds_model();
  for (const optim::OptimizerKind* kind : optim::optimizer_kinds().all()) {
    CAPTURE(kind->name);
    CHECK(!kind->doc.empty());
    std::set<std::string> names;
    for (const Setting& setting : optim::optimizer_settings(*kind)) {
      CHECK(!setting.doc.empty());
      CHECK_MESSAGE(names.insert(setting.name).second, setting.name);
    }
    const auto optimizer = made_optimizer(kind->name, {}, *model);
    CHECK(optimizer->options.lazy == kind->name.starts_with("lazy-"));
    CHECK(optimizer->options.groups.empty());
  }
  for (const optim::ScheduleKind* kind : optim::schedule_kinds().all()) {
    CAPTURE(kind->name);
    CHECK(!kind->doc.empty());
    CHECK(std::isfinite(schedule_by(kind->name, {})(3)));
  }
  CHECK_THROWS_WITH_AS(optim::optimizer_kinds().at("adamv"), doctest::Contains("did you mean 'adam"),
                       InputError);
  CHECK_THROWS_WITH_AS(optim::schedule_kinds().at("cosin"), doctest::Contains("did you mean 'cosine'"),
                       InputError);
}

TEST_CASE("an optimiser made by name updates as the one made directly") {
  struct Case {
    std::string name;
    std::vector<std::pair<std::string, SettingValue>> settings;
    std::shared_ptr<const optim::Optimizer> direct;
  };
  const optim::Options decay{.weight_decay = 0.1};
  const std::vector<double> betas = {0.8, 0.95};
  const std::vector<Case> cases = {
      {"sgd", {}, optim::sgd({.momentum = 0.9})},
      {"sgd", {{"momentum", 0.5}, {"nesterov", true}, {"weight_decay", 0.1}}, optim::sgd({0.5, true, decay})},
      {"lazy-sgd", {{"momentum", int64_t{0}}}, optim::sgd({.common = {.lazy = true}})},
      {"adam", {{"weight_decay", 0.1}}, optim::adam({.common = decay})},
      {"lazy-adam", {{"eps", 0.1}}, optim::adam({.epsilon = 0.1, .common = {.lazy = true}})},
      {"adamw", {{"weight_decay", 0.1}, {"betas", betas}}, optim::adamw({0.8, 0.95, 1e-8, decay})},
      {"lazy-adamw", {{"weight_decay", 0.1}}, optim::adamw({.common = {.weight_decay = 0.1, .lazy = true}})},
      {"adagrad", {{"weight_decay", 0.1}}, optim::adagrad({.common = decay})}};
  std::set<std::vector<double>> results;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto model = kinds_model();
    const std::vector<double> by_name = kinds_trained(model, made_optimizer(c.name, c.settings, *model));
    CHECK(by_name == kinds_trained(kinds_model(), c.direct));
    results.insert(by_name);
  }
  CHECK(results.size() == cases.size());  // settings do matter
}

TEST_CASE("limits and the groups of norms' biases and of what is not decayed") {
  const auto is_norm_bias = [](const std::string& name, const Type&) { return name == "1.bias"; };
  const auto is_flat = [](const std::string&, const Type& type) { return type.shape.rank() <= 1; };
  struct Case {
    std::vector<std::pair<std::string, SettingValue>> settings;
    std::vector<optim::Group> groups;
  };
  for (const Case& c :
       {Case{{{"norm_bias_lr", 8.0}}, {{is_norm_bias, 8, 0.1 / 8}}},
        Case{{{"decay_all", false}}, {{is_flat, 1, 0.0}}},
        Case{{{"norm_bias_lr", 8.0}, {"decay_all", false}}, {{is_norm_bias, 8, 0.0}, {is_flat, 1, 0.0}}}}) {
    auto settings = c.settings;
    settings.emplace_back("weight_decay", 0.1);
    const auto model = kinds_model();
    const std::vector<double> by_name =
        kinds_trained(model, made_optimizer("sgd", settings, *model, 0.3, 0.05));
    CHECK(by_name == kinds_trained(kinds_model(), optim::sgd({.momentum = 0.9,
                                                              .common = {.weight_decay = 0.1,
                                                                         .clip_value = 0.05,
                                                                         .clip_norm = 0.3,
                                                                         .groups = c.groups}})));
  }
}

TEST_CASE("settings that make no optimiser or schedule are told") {
  const auto model = kinds_model();
  CHECK_THROWS_WITH_AS(made_optimizer("adam", {{"betas", std::vector<double>{0.9}}}, *model),
                       "betas must be two numbers, not 1", InputError);
  CHECK_THROWS_WITH_AS(optimizer_by("sgd", {{"momentum", 1.0}}), doctest::Contains("must be from 0 to"),
                       InputError);
  CHECK_THROWS_WITH_AS(optimizer_by("sgd", {{"betas", 1.0}}), doctest::Contains("unknown key 'betas'"),
                       InputError);
  CHECK_THROWS_WITH_AS(schedule_by("one-cycle", {{"warmup", 1.0}}), doctest::Contains("unknown key 'warmup'"),
                       InputError);
  CHECK_THROWS_WITH_AS(schedule_by("triangle", {{"peak", 1.0}}), doctest::Contains("lies between 0 and 1"),
                       InputError);
}

TEST_CASE("a schedule made by name gives the rates of the one made directly") {
  check_same_rates(schedule_by("constant", {}), optim::constant(0.4));
  check_same_rates(schedule_by("step", {{"every", 1.5}, {"factor", 0.5}}), optim::step_decay(0.4, 15, 0.5));
  check_same_rates(schedule_by("step", {}), optim::step_decay(0.4, 100, 0.1));
  check_same_rates(schedule_by("cosine", {{"end", 0.1}}), optim::cosine(0.4, 50, 0.4 * 0.1));
  check_same_rates(schedule_by("linear", {{"end", 0.1}}), optim::linear_decay(0.4, 50, 0.1));
  check_same_rates(schedule_by("triangle", {{"peak", 0.25}, {"end", 0.07}}),
                   optim::triangle(0.4, 50, 0.25, 0.2, 0.07));
  check_same_rates(schedule_by("one-cycle", {{"start", 0.04}, {"end", 0.01}}),
                   optim::one_cycle(0.4, 50, 0.3, 1 / 0.04, 0.04 / 0.01));
  // A share of 0 is close to it.
  CHECK(schedule_by("one-cycle", {{"start", 0.0}})(0) < 1e-8);
  CHECK(optim::linear_decay(0.4, 50, 0.5)(25) == doctest::Approx(0.3));
  CHECK(optim::linear_decay(0.4, 50, 0.5)(80) == doctest::Approx(0.2));
}

TEST_CASE("warm-up is given in epochs and goes before the kinds that do not rise themselves") {
  for (const char* name : {"constant", "step", "cosine", "linear"}) {
    CAPTURE(name);
    const optim::Schedule warm = schedule_by(name, {{"warmup", 0.8}});
    check_same_rates(warm, optim::warm_up(schedule_by(name, {}), 8));
    CHECK(warm(0) == doctest::Approx(0.4 / 8));
    CHECK(warm(20) == schedule_by(name, {})(20));
  }
}
