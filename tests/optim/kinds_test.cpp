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
  return optim::make_schedule(kind, settings, {.lr = 0.4, .steps_per_epoch = 10, .total_steps = 50});
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
        std::set<std::string>{"sgd", "adam", "adamw", "adagrad", "lazy-sgd", "lazy-adam", "lazy-adamw",
                              "rmsprop", "nadam", "radam", "lion", "lamb", "adafactor", "muon", "sam",
                              "lbfgs"});
  CHECK(std::set(schedules.begin(), schedules.end()) ==
        std::set<std::string>{"constant", "step", "cosine", "one-cycle", "triangle", "linear", "polynomial",
                              "cosine-restarts", "inverse-sqrt", "plateau"});
  const auto model = kinds_model();
  for (const optim::OptimizerKind* kind : optim::optimizer_kinds().all()) {
    CAPTURE(kind->name);
    CHECK(!kind->doc.empty());
    std::set<std::string> names;
    for (const Setting& setting : optim::optimizer_settings(*kind)) {
      CHECK(!setting.doc.empty());
      CHECK_MESSAGE(names.insert(setting.name).second, setting.name);
    }
    if (kind->whole) {  // only a training can use it
      CHECK_THROWS_WITH_AS(made_optimizer(kind->name, {}, *model), doctest::Contains("millrace train"),
                           InputError);
      continue;
    }
    const auto optimizer = made_optimizer(kind->name, {}, *model);
    CHECK(optimizer->options.lazy == kind->name.starts_with("lazy-"));
    // Decay moves the rows that a batch does not name, too.
    CHECK(optimizer->rows_suffice(0.1) == optimizer->options.lazy);
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
      {"adagrad", {{"weight_decay", 0.1}}, optim::adagrad({.common = decay})},
      {"rmsprop",
       {{"alpha", 0.9}, {"eps", 0.1}, {"momentum", 0.5}, {"centred", true}, {"weight_decay", 0.1}},
       optim::rmsprop({0.9, 0.1, 0.5, true, decay})},
      {"nadam",
       {{"betas", betas}, {"momentum_decay", 0.1}, {"decoupled", true}, {"weight_decay", 0.1}},
       optim::nadam({0.8, 0.95, 1e-8, 0.1, true, decay})},
      {"radam",
       {{"betas", betas}, {"eps", 0.1}, {"weight_decay", 0.1}},
       optim::radam({0.8, 0.95, 0.1, false, decay})},
      {"lion", {{"betas", betas}, {"weight_decay", 0.1}}, optim::lion({0.8, 0.95, decay})},
      {"lamb", {{"eps", 0.1}}, optim::lamb({.epsilon = 0.1})},
      {"adafactor",
       {{"beta2_decay", -0.5}, {"eps", 0.1}, {"clip", 0.5}},
       optim::adafactor({-0.5, 0.1, 0.5, {}})},
      {"muon",
       {{"scale", std::string("original")}, {"iterations", int64_t{3}}, {"adamw", std::string("4.*")}},
       optim::muon({.iterations = 3,
                    .match_adamw = false,
                    .by_adamw = [](const std::string& name) { return name.starts_with("4."); }})},
      {"sam",
       {{"rho", 0.5}, {"momentum", 0.8}, {"nesterov", true}},
       optim::sam(optim::sgd({.momentum = 0.8, .nesterov = true}), 0.5)},
      {"sam",
       {{"base", std::string("adamw")}, {"betas", betas}, {"weight_decay", 0.1}},
       optim::sam(optim::adamw({0.8, 0.95, 1e-8, decay}))}};
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
  CHECK_THROWS_WITH_AS(optimizer_by("sgd", {{"lr", 1e30}}),
                       doctest::Contains("must be from 0 to 1e+18, not 1e+30"), InputError);
  CHECK_THROWS_WITH_AS(optimizer_by("sgd", {{"norm_bias_lr", 0.0}}), doctest::Contains("must be from 1e-06"),
                       InputError);
  CHECK_THROWS_WITH_AS(optimizer_by("sgd", {{"betas", 1.0}}), doctest::Contains("unknown key 'betas'"),
                       InputError);
  CHECK_THROWS_WITH_AS(schedule_by("one-cycle", {{"power", 1.0}}), doctest::Contains("unknown key 'power'"),
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
  check_same_rates(schedule_by("polynomial", {{"power", 3.0}, {"end", 0.1}}),
                   optim::polynomial(0.4, 50, 3, 0.1));
  check_same_rates(schedule_by("cosine-restarts", {{"first", 1.5}, {"times", 3.0}, {"end", 0.1}}),
                   optim::cosine_restarts(0.4, 15, 3, 0.4 * 0.1));
  check_same_rates(schedule_by("inverse-sqrt", {{"warmup", 0.8}}),
                   optim::warm_up(optim::inverse_sqrt(0.4, 8), 8));
  check_same_rates(schedule_by("plateau", {}), optim::constant(0.4));
  // A share of 0 is close to it.
  CHECK(schedule_by("one-cycle", {{"start", 0.0}})(0) < 1e-8);
  CHECK(optim::linear_decay(0.4, 50, 0.5)(25) == doctest::Approx(0.3));
  CHECK(optim::linear_decay(0.4, 50, 0.5)(80) == doctest::Approx(0.2));
}

TEST_CASE("warm-up is given in epochs and goes before every kind") {
  for (const optim::ScheduleKind* kind : optim::schedule_kinds().all()) {
    const std::string& name = kind->name;
    if (name == "inverse-sqrt") continue;  // falls from the end of its warm-up on
    CAPTURE(name);
    const optim::Schedule warm = schedule_by(name, {{"warmup", 0.8}});
    check_same_rates(warm, optim::warm_up(schedule_by(name, {}), 8));
    CHECK(warm(0) == doctest::Approx(schedule_by(name, {})(0) / 8));
    CHECK(warm(20) == schedule_by(name, {})(20));
  }
}

TEST_CASE("schedules at the ends of their settings, and on runs of a step or two, give rates") {
  int made = 0;
  for (const optim::ScheduleKind* kind : optim::schedule_kinds().all())
    for (const Setting& setting : kind->settings)
      for (const double end : {setting.low, setting.high}) {
        const bool whole = std::holds_alternative<int64_t>(setting.usual);
        if (std::abs(end) > 1e9 || (!whole && !std::holds_alternative<double>(setting.usual))) continue;
        CAPTURE(kind->name);
        CAPTURE(setting.name);
        CAPTURE(end);
        Settings settings(kind->settings);
        if (whole)
          settings.set(setting.name, static_cast<int64_t>(end));
        else
          settings.set(setting.name, end);
        for (const auto& [epoch, total] :
             {std::pair<int64_t, int64_t>{1, 1}, {1, 2}, {7, 7}, {10, 50}, {50, 10}}) {
          CAPTURE(total);
          try {
            const optim::Schedule schedule = optim::make_schedule(
                *kind, settings, {.lr = 0.4, .steps_per_epoch = epoch, .total_steps = total});
            double most = 0;
            for (int64_t step = 0; step <= total + 3; ++step) {
              CAPTURE(step);
              const double rate = schedule(step);
              CHECK(std::isfinite(rate));
              CHECK(rate >= 0);
              most = std::max(most, rate);
            }
            if (total > 1) CHECK(most > 0);  // one that begins at 0 has no other step
            ++made;
          } catch (const InputError&) {
          }
        }
      }
  CHECK(made > 100);
}

TEST_CASE("schedules follow PyTorch's and the papers'") {
  // torch.optim.lr_scheduler.PolynomialLR(total_iters=10, power=2) and CosineAnnealingWarmRestarts(4, 2,
  // 0.01), PyTorch 2.13, from a rate of 0.5.
  const std::vector<double> polynomial = {0.5,  0.405, 0.32, 0.245, 0.18, 0.125,
                                          0.08, 0.045, 0.02, 0.005, 0,    0},
                            restarts = {0.5,   0.428241161391, 0.255,           0.0817588386093,
                                        0.5,   0.481350485465, 0.428241161391,  0.348757440929,
                                        0.255, 0.161242559071, 0.0817588386093, 0.0286495145347,
                                        0.5,   0.495292393699, 0.481350485465,  0.458710055014};
  const optim::Schedule down = optim::polynomial(0.5, 10, 2), again = optim::cosine_restarts(0.5, 4, 2, 0.01);
  for (size_t i = 0; i < polynomial.size(); ++i)
    CHECK(down(static_cast<int64_t>(i)) == doctest::Approx(polynomial[i]).epsilon(1e-9).scale(1));
  for (size_t i = 0; i < restarts.size(); ++i)
    CHECK(again(static_cast<int64_t>(i)) == doctest::Approx(restarts[i]).epsilon(1e-9));
  const optim::Schedule root = optim::inverse_sqrt(0.5, 4);
  CHECK(root(0) == 0.5);  // it is the warm-up that is lower there
  CHECK(root(3) == 0.5);
  CHECK(root(15) == doctest::Approx(0.25));
  CHECK(optim::cosine_restarts(0.5, 4, 1)(400000001) == doctest::Approx(optim::cosine(0.5, 4)(1)));
  CHECK_THROWS_AS(optim::polynomial(1, 10, -1), InputError);
  CHECK_THROWS_AS(optim::constant(NAN), InputError);
  CHECK_THROWS_AS(optim::constant(-1), InputError);
  CHECK_THROWS_AS(optim::cosine(1, 9, NAN), InputError);
  CHECK_THROWS_AS(optim::step_decay(1, 2, INFINITY), InputError);
  CHECK_THROWS_AS(optim::warm_up(optim::constant(1), -5), InputError);
  CHECK_THROWS_AS(optim::cosine_restarts(1, 4, 0.5), InputError);
}

TEST_CASE("a plateau's rate follows PyTorch's for the same measurements") {
  // ReduceLROnPlateau(factor=0.5, patience=1, cooldown=0 or 2, threshold=0.01, min_lr=0.1 of the rate).
  const std::vector<double> measured = {1,    0.9,  0.899, 0.895, 0.91, 0.7, 0.71, 0.72, 0.73, 0.74,
                                        0.75, 0.76, 0.69,  0.8,   0.8,  0.8, 0.8,  0.8,  0.8,  0.8};
  const optim::ScheduleKind& kind = optim::schedule_kinds().at("plateau");
  const auto factors = [&](bool higher, int64_t cooldown) {
    Settings settings(kind.settings);
    settings.set("factor", 0.5);
    settings.set("patience", int64_t{1});
    settings.set("threshold", 0.01);
    settings.set("cooldown", cooldown);
    settings.set("end", 0.1);
    optim::Watched state;
    std::vector<double> all;
    for (const double value : measured) {
      kind.measured(settings, value, higher, state);
      all.push_back(state.factor);
    }
    return all;
  };
  CHECK(factors(false, 0) == std::vector<double>{1,     1,   1,   0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125,
                                                 0.125, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,  0.1,  0.1});
  CHECK(factors(false, 2) == std::vector<double>{1,     1,    1,    0.5,  0.5,   0.5,   0.5,
                                                 0.25,  0.25, 0.25, 0.25, 0.125, 0.125, 0.125,
                                                 0.125, 0.1,  0.1,  0.1,  0.1,   0.1});
  CHECK(factors(true, 0) == std::vector<double>{1,   1,   0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.1, 0.1,
                                                0.1, 0.1, 0.1, 0.1, 0.1,  0.1,  0.1,   0.1,   0.1, 0.1});
}

TEST_CASE("rates by name and by depth") {
  const auto model = kinds_model();  // 0: convolution, 1: batch norm, 4: linear
  CHECK(optim::rate_factors({}, *model).empty());
  const auto by_name = optim::rate_factors({{{"0.*", 0.5}, {"*.bias", 0.1}}}, *model);
  CHECK(by_name ==
        std::map<std::string, double>{{"0.weight", 0.5}, {"0.bias", 0.5}, {"1.bias", 0.1}, {"4.bias", 0.1}});
  const auto by_depth = optim::rate_factors({{{"4.bias", 3}}, 0.5}, *model);
  CHECK(by_depth == std::map<std::string, double>{{"0.weight", 0.25},
                                                  {"0.bias", 0.25},
                                                  {"1.weight", 0.5},
                                                  {"1.bias", 0.5},
                                                  {"4.weight", 1},
                                                  {"4.bias", 3}});
  CHECK_THROWS_WITH_AS(optim::rate_factors({{{"o.weight", 0.5}}}, *model),
                       doctest::Contains("no parameter is called 'o.weight'; did you mean '0.weight'"),
                       InputError);
  // A transformer: embeddings, blocks, head.
  const nn::ModelOptions small{.input = {8}, .vocabulary = 16, .width = 8, .depth = 3, .heads = 2};
  const nn::Model gpt = nn::make_model("gpt", small);
  CHECK(gpt.module->parameters().back().name ==
        "blocks.2.fc2.bias");  // registered last, used before the head
  const std::vector<std::string> names = {"tok",
                                          "pos",
                                          "blocks.0.qkv.weight",
                                          "between.weight",
                                          "blocks.1.qkv.weight",
                                          "blocks.1.qkv.bias",
                                          "norm.weight",
                                          "head.weight"};
  CHECK(optim::layers_behind(names) == std::map<std::string, int64_t>{{"tok", 3},
                                                                      {"pos", 3},
                                                                      {"blocks.0.qkv.weight", 2},
                                                                      {"between.weight", 1},
                                                                      {"blocks.1.qkv.weight", 1},
                                                                      {"blocks.1.qkv.bias", 1},
                                                                      {"norm.weight", 0},
                                                                      {"head.weight", 0}});
  const std::vector<std::string> unnumbered = {"a.weight", "b.weight"};
  CHECK_THROWS_WITH_AS(optim::layers_behind(unnumbered), doctest::Contains("number no layers (a.weight"),
                       InputError);
}

TEST_CASE("parameters with factors train at their rates, and keep what their group says of decay") {
  const auto model = kinds_model();
  const auto settings = optimizer_by("sgd", {{"weight_decay", 0.1}, {"decay_all", false}});
  const auto by_name = optim::make_optimizer(optim::optimizer_kinds().at("sgd"), settings, 0, 0, *model,
                                             {{{"4.*", 0.5}, {"0.bias", 2}}});
  const auto named = [](const std::string& name) {
    return [name](const std::string& each, const Type&) { return each == name; };
  };
  const std::vector<optim::Group> groups = {
      {named("4.weight"), 0.5, {}},
      {named("4.bias"), 0.5, 0.0},
      {named("0.bias"), 2, 0.0},
      {[](const std::string&, const Type& type) { return type.shape.rank() <= 1; }, 1, 0.0}};
  const std::vector<double> expected = kinds_trained(
      kinds_model(), optim::sgd({.momentum = 0.9, .common = {.weight_decay = 0.1, .groups = groups}}));
  CHECK(kinds_trained(model, by_name) == expected);
}
