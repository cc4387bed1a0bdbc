// Steps that are left out within their own graph, and the norms that it reports.
#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>

#include "optim/model_scope.h"

using namespace millrace;

namespace {

std::shared_ptr<nn::Module> guarded_model() {
  const nn::Model model = nn::make_layers({"linear 5", "batch-norm", "tanh", "linear 1"}, {3});
  model.module->initialise(7);
  return model.module;
}

optim::TrainOptions guarded(const std::string& precision = "fp32", double ema = 0) {
  optim::TrainOptions options;
  options.compile.precision = precision;
  options.ema = ema;
  options.guard = true;
  options.norms = true;
  return options;
}

struct Guarded {
  explicit Guarded(const std::shared_ptr<const optim::Optimizer>& optimizer,
                   const optim::TrainOptions& options = guarded())
      : model(guarded_model()),
        step(
            model, {{"x", {f32, {8, 3}}}, {"y", {f32, {8, 1}}}},
            [](nn::Module& m, std::span<const Tensor> in) {
              return optim::StepResult{mse_loss(m(in[0]), in[1])};
            },
            optimizer, options) {}

  /// A batch that depends on `seed` alone, its first target times `factor`.
  void run(uint64_t seed, double factor = 1) {
    nn::init::normal(0, 1)(step.input(0), seed, "x");
    nn::init::normal(0, 1)(step.input(1), seed, "y");
    step.input(1).set(0, step.input(1).at(0) * factor);
    step.run(0.05);
  }
  std::vector<Array> values() const {
    std::vector<Array> all;
    for (const nn::Named& named : optim::tensors_of(*model)) all.push_back(named.tensor->to_array().clone());
    for (const auto& [name, array] : step.state())
      if (name != "skipped_steps" && name != "good_steps") all.push_back(array.clone());
    return all;
  }

  std::shared_ptr<nn::Module> model;
  optim::TrainStep step;
};

void check_same(const std::vector<Array>& a, const std::vector<Array>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i].identical(b[i]));
}

}  // namespace

TEST_CASE("a training without its bad steps is what is left when they are left out, bias corrections too") {
  for (const auto& optimizer : {optim::adamw(), optim::sgd({.momentum = 0.9}), optim::nadam()})
    for (const double ema : {0.0, 0.9}) {
      Guarded whole(optimizer, guarded("fp32", ema)), spoiled(optimizer, guarded("fp32", ema));
      for (uint64_t i = 0; i < 6; ++i) {
        whole.run(i);
        whole.step.set_loss_limit(std::numeric_limits<double>::infinity());
        spoiled.run(i);
        CHECK(spoiled.step.sound());
        const auto before = spoiled.values();
        const double loss = spoiled.step.loss();
        if (i == 1) spoiled.run(99, NAN);
        if (i == 2) spoiled.run(99, 1e25);  // the loss overflows
        if (i == 3) {                       // a spike
          spoiled.step.set_loss_limit(10 * loss);
          spoiled.run(99, 1e3);
          CHECK(std::isfinite(spoiled.step.loss()));
          spoiled.step.set_loss_limit(std::numeric_limits<double>::infinity());
        }
        if (i >= 1 && i <= 3) check_same(spoiled.values(), before);
      }
      CHECK(spoiled.step.left_out() == 3);
      CHECK(spoiled.step.updates() == 6);
      CHECK(whole.step.updates() == 6);
      check_same(spoiled.values(), whole.values());
    }
}

TEST_CASE("a step that was left out is not sound, and says what of it is not finite") {
  Guarded g(optim::adamw());
  g.run(1, NAN);
  CHECK_FALSE(g.step.sound());
  CHECK(g.step.find_non_finite() == "input 'y' has NaN values");
  g.step.set_loss_limit(1e-9);
  g.run(2);
  CHECK_FALSE(g.step.sound());
  CHECK(g.step.find_non_finite().empty());
  g.step.set_loss_limit(1e9);
  g.run(2);
  CHECK(g.step.sound());
  g.step.set_step(10, 4);
  CHECK(g.step.updates() == 6);
  CHECK_THROWS_AS(g.step.set_step(3, 4), InputError);
}

TEST_CASE("in fp16 a spike is left out and counted, and the scale of the loss stays") {
  Guarded g(optim::adamw(), guarded("fp16"));
  const auto scale = [&] { return g.step.state()[0].second.at(0); };
  const auto skipped = [&] { return g.step.state()[2].second.int_at(0); };
  for (double before = 0; scale() != before;) {  // until the scale fits
    before = scale();
    g.run(1);
  }
  const double before = scale();
  const int64_t updates = g.step.updates(), left_out = skipped();
  g.step.set_loss_limit(1e-9);
  g.run(1);
  CHECK_FALSE(g.step.sound());
  CHECK(scale() == before);
  CHECK(skipped() == left_out + 1);
  CHECK(g.step.updates() == updates);
  CHECK(g.step.left_out() == 0);
}

TEST_CASE("norms are those of gradients before clipping, of weights before the update, and of the update") {
  for (const double clip : {0.0, 1e-3}) {
    Guarded g(optim::sgd({.common = {.clip_norm = clip}}));
    std::vector<Array> before;
    for (const nn::Named& p : g.model->parameters()) before.push_back(p.tensor->to_array().clone());
    g.run(3);
    const auto norms = g.step.norms();
    const auto parameters = g.model->parameters();
    REQUIRE(norms.size() == parameters.size());
    double squares = 0;
    for (const auto& each : norms) squares += each.gradient * each.gradient;
    const auto metrics = g.step.metrics();
    REQUIRE(metrics.back().first == "grad_norm");
    CHECK(std::sqrt(squares) == doctest::Approx(metrics.back().second).epsilon(1e-5));
    for (size_t i = 0; i < norms.size(); ++i) {
      const std::vector<double> old = before[i].to_doubles(),
                                now = parameters[i].tensor->to_array().to_doubles();
      double weight = 0, update = 0;
      for (size_t k = 0; k < old.size(); ++k) {
        weight += old[k] * old[k];
        update += (now[k] - old[k]) * (now[k] - old[k]);
      }
      CHECK(norms[i].name == parameters[i].name);
      CHECK(norms[i].weight == doctest::Approx(std::sqrt(weight)).epsilon(1e-5));
      CHECK(norms[i].update == doctest::Approx(std::sqrt(update)).epsilon(1e-3));
      // Plain descent: the update is the rate times the gradient, as clipped.
      const double factor = clip > 0 ? std::min(1.0, clip / std::sqrt(squares)) : 1;
      CHECK(norms[i].update == doctest::Approx(0.05 * factor * norms[i].gradient).epsilon(1e-3));
    }
  }
}
