#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>

#include "optim/verify.h"
#include "support/stored_steps.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

const StoredValues& stored() {
  static const StoredValues all({
#include "optim/reference_values.inc"
  });
  return all;
}

optim::StepResult squared_error(nn::Module& model, std::span<const Tensor> inputs) {
  return {mse_loss(model(inputs[0]), inputs[1])};
}

optim::Options biases_without_decay(optim::Options options) {
  options.groups = {{[](const std::string& name, const Type&) { return name.ends_with("bias"); }, 4.0, 0.0}};
  return options;
}

}  // namespace

TEST_CASE("optimisers follow PyTorch's, with weight decay, groups and clipping") {
  struct Case {
    std::string name;
    double lr;
    std::shared_ptr<const optim::Optimizer> optimizer;
  };
  const std::vector<Case> cases = {
      {"sgd", 0.1, optim::sgd()},
      {"sgd decay", 0.1, optim::sgd({.common = {.weight_decay = 0.05}})},
      {"sgd momentum", 0.1, optim::sgd({.momentum = 0.9, .common = {.weight_decay = 0.05}})},
      {"sgd nesterov", 0.1,
       optim::sgd({.momentum = 0.85, .nesterov = true, .common = {.weight_decay = 0.05}})},
      {"sgd groups", 0.05,
       optim::sgd({.momentum = 0.9, .common = biases_without_decay({.weight_decay = 0.1})})},
      {"sgd clip norm", 0.1, optim::sgd({.common = {.clip_norm = 0.7}})},
      {"sgd clip value", 0.1, optim::sgd({.common = {.clip_value = 0.3}})},
      {"adam", 0.05, optim::adam()},
      {"adam decay", 0.05,
       optim::adam({.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .common = {.weight_decay = 0.1}})},
      {"adam epsilon", 0.05,
       optim::adam({.epsilon = 0.1})},  // beside sqrt(v) / sqrt(1 − β2^t), not beside sqrt(v)
      {"adamw", 0.05, optim::adamw({.common = {.weight_decay = 0.1}})},
      {"adamw clip", 0.05,
       optim::adamw(
           {.common = biases_without_decay({.weight_decay = 0.1, .clip_value = 1, .clip_norm = 0.5})})}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto model = stored().model();
    const auto step = stored().step(model, c.optimizer);
    const Stored& expected = stored().at(c.name);
    for (const double loss : expected.curve) {
      step->run(c.lr);
      CHECK(step->loss() == doctest::Approx(loss).epsilon(2e-5));
    }
    std::vector<double> final_values;
    for (const nn::Named& p : model->parameters())
      for (const double v : p.tensor->to_array().to_doubles()) final_values.push_back(v);
    REQUIRE(final_values.size() == expected.values.size());
    for (size_t i = 0; i < final_values.size(); ++i)
      CHECK(final_values[i] == doctest::Approx(expected.values[i]).epsilon(1e-4).scale(1));
  }
}

TEST_CASE("schedules follow PyTorch's") {
  const std::map<std::string, optim::Schedule> schedules = {
      {"step", optim::step_decay(0.5, 4, 0.3)},
      {"cosine", optim::cosine(0.5, 10, 0.01)},
      {"one cycle", optim::one_cycle(0.5, 20)},
      {"one cycle short", optim::one_cycle(0.2, 7, 0.5, 10, 100)},
      {"warm up", optim::warm_up(optim::constant(0.5), 5)}};
  for (const auto& [name, schedule] : schedules) {
    CAPTURE(name);
    int64_t step = 0;
    for (const double rate : stored().at(name).curve)
      CHECK(schedule(step++) == doctest::Approx(rate).epsilon(1e-9));
  }
  const optim::Schedule triangle = optim::triangle(2, 100);
  CHECK(triangle(0) == doctest::Approx(0.4));
  CHECK(triangle(23) == doctest::Approx(2));
  CHECK(triangle(100) == doctest::Approx(0.14));
  CHECK_THROWS_AS(optim::cosine(1, 0), InputError);
}

TEST_CASE("a step whose loss is not finite changes nothing, and its first bad operation is named") {
  const auto model = stored().model();
  const auto step = stored().step(model, optim::adamw());
  step->run(0.1);
  CHECK(step->find_non_finite().empty());
  const auto before = step->state();
  std::vector<Array> kept;
  for (const nn::Named& p : model->parameters()) kept.push_back(p.tensor->to_array().clone());
  for (const auto& named : before) kept.push_back(named.second.clone());

  Array bad = Array::of(f32, {6, 4}, stored().at("x").values);
  bad.set(5, NAN);
  step->bind_input(0, bad);
  step->run(0.1);
  CHECK(std::isnan(step->loss()));
  CHECK(step->find_non_finite() == "input 'x' has NaN values");
  // A weight that overflows the layer's product.
  bad.set(5, 1);
  Array weight = model->find("2.weight")->to_array();
  const double original = weight.at(0);
  weight.set(0, 3e38);
  Array bias = model->find("2.bias")->to_array();
  const double original_bias = bias.at(0);
  bias.set(0, 3e38);
  step->run(0.1);
  CHECK(step->find_non_finite().find("infinite") != std::string::npos);
  CHECK(step->find_non_finite().find("layer '2'") != std::string::npos);
  weight.set(0, original);
  bias.set(0, original_bias);

  size_t next = 0;
  for (const nn::Named& p : model->parameters()) CHECK(p.tensor->to_array().identical(kept[next++]));
  for (const auto& named : step->state()) CHECK(named.second.identical(kept[next++]));
}

TEST_CASE("verified steps are steps, and agree with the reference") {
  for (const auto& optimizer : {optim::sgd({.momentum = 0.9}), optim::adamw()}) {
    const auto plain = stored().model(), verified = stored().model();
    const auto a = stored().step(plain, optimizer), b = stored().step(verified, optimizer);
    for (int i = 0; i < 3; ++i) {
      a->run(0.05);
      CHECK(b->run_verified(0.05) == "");
    }
    CHECK(a->loss() == b->loss());
    for (size_t i = 0; i < plain->parameters().size(); ++i)
      CHECK(
          plain->parameters()[i].tensor->to_array().identical(verified->parameters()[i].tensor->to_array()));
  }
}

TEST_CASE("the first operation that differs from the reference is named") {
  Graph graph;
  const Value x = graph.input("x", {f32, {4, 8}}), w = graph.input("w", {f32, {8, 8}});
  const Value twice = graph.add("add", {x, x});
  graph.set_origin("second layer");
  const Value product = graph.add("matmul", {twice, w});
  graph.set_outputs({graph.add("tanh", {product})});
  Array a(f32, {4, 8}), b(f32, {8, 8});
  for (int64_t i = 0; i < a.count(); ++i) a.set(i, std::sin(static_cast<double>(i)));
  for (int64_t i = 0; i < b.count(); ++i) b.set(i, std::cos(static_cast<double>(i)));
  const std::vector<Array> inputs = {a, b};
  CHECK(optim::first_difference(graph, inputs, {}, 1e-5) == "");
  // A limit that the step keeps to is not meant for all values at once.
  CHECK(optim::first_difference(graph, inputs, {.memory = 1}, 1e-5) == "");
  // bf16 products are off by more than f32 ones may be.
  const std::string found =
      optim::first_difference(graph, inputs, {.target = "ref", .precision = "bf16"}, 1e-5);
  CHECK(found.starts_with("matmul in layer 'second layer' (f32[4, 8]) differs by"));
}

TEST_CASE("clipped gradients that are not finite under a finite loss change nothing and are named") {
  const auto model = stored().model();
  const auto step = stored().step(model, optim::sgd({.common = {.clip_norm = 1}}));
  step->run(0.1);
  CHECK(step->sound());
  Array weight = model->find("2.weight")->to_array();
  weight.set(0, 1e18);  // the loss is about 1e36, the squares of the gradients are not finite
  const Array kept = weight.clone();
  step->run(0.1);
  CHECK(std::isfinite(step->loss()));
  CHECK_FALSE(step->sound());
  CHECK(step->find_non_finite().find("infinite") != std::string::npos);
  CHECK(weight.identical(kept));
}

TEST_CASE("a training step reports its inputs' and the loss's mistakes") {
  const auto model = stored().model();
  CHECK_THROWS_WITH_AS(optim::TrainStep(model, {{"x", {f32, {Dim::named("batch"), 4}}}, {"y", {f32, {6, 2}}}},
                                        squared_error, optim::sgd()),
                       "input 'x' of a training step has shape [batch, 4]: give it sizes", TypeError);
  CHECK_THROWS_WITH_AS(
      optim::TrainStep(
          model, {{"x", {f32, {6, 4}}}},
          [](nn::Module& m, std::span<const Tensor> in) { return optim::StepResult{m(in[0])}; },
          optim::sgd()),
      "the loss must be a scalar, but it is f32[6, 2]", TypeError);
  CHECK_THROWS_WITH_AS(optim::TrainStep(
                           model, {{"x", {f32, {6, 4}}}},
                           [](nn::Module& m, std::span<const Tensor> in) {
                             const Tensor y = m(in[0]).mean();
                             return optim::StepResult{y < 0 ? -y : y};
                           },
                           optim::sgd()),
                       doctest::Contains("the host reads a value"), TypeError);
  // The model is as before: its parameters still have their values.
  CHECK(model->parameters()[0].tensor->is_concrete());

  auto fresh = std::make_shared<nn::Sequential>();
  fresh->append(std::make_shared<nn::Linear>(4, 2));
  CHECK_THROWS_WITH_AS(stored().step(fresh, optim::sgd()),
                       doctest::Contains("parameter '0.weight' has no value"), InputError);
}

TEST_CASE("lookahead pulls fast weights to slow ones") {
  const auto model = stored().model();
  optim::Lookahead lookahead(*model);
  Tensor& bias = *model->find("0.bias");
  bias = Array::of(f32, {3}, std::vector<double>{1.5, 0.75, -0.75});
  lookahead.update(0.75);
  CHECK(bias.to_array().at(0) == doctest::Approx(0.75 * -0.5 + 0.25 * 1.5));
  CHECK(bias.to_array().at(1) == doctest::Approx(0.75));
  // What does not change is not worn down by rounding.
  const Array before = model->find("0.weight")->to_array().clone();
  for (int i = 0; i < 100; ++i) lookahead.update(0.95 * i / 100);
  CHECK(model->find("0.weight")->to_array().identical(before));
}

TEST_CASE("numbers that no optimiser, step or schedule can take are refused") {
  CHECK_THROWS_AS(optim::sgd({.momentum = NAN}), InputError);
  CHECK_THROWS_AS(optim::sgd({.common = {.weight_decay = -1}}), InputError);
  CHECK_THROWS_AS(optim::sgd({.common = {.clip_norm = NAN}}), InputError);
  CHECK_THROWS_AS(optim::sgd({.common = {.groups = {{}}}}), InputError);
  CHECK_THROWS_AS(optim::adam({.beta1 = 1}), InputError);
  CHECK_THROWS_AS(optim::adamw({.beta2 = -1}), InputError);
  CHECK_THROWS_AS(optim::adam({.epsilon = -1}), InputError);
  CHECK_THROWS_AS(optim::one_cycle(0.1, 10, 0.3, 0), InputError);
  CHECK_THROWS_AS(optim::one_cycle(0.1, 10, 2), InputError);
  CHECK_THROWS_AS(optim::warm_up({}, 3), InputError);

  const std::vector<optim::TensorSpec> specs = {{"x", {f32, {4, 4}}}, {"target", {f32, {4, 2}}}};
  const auto model = stored().model();
  CHECK_THROWS_AS(optim::TrainStep(nullptr, specs, squared_error, optim::sgd()), InputError);
  CHECK_THROWS_AS(optim::TrainStep(model, specs, squared_error, nullptr), InputError);
  CHECK_THROWS_AS(optim::TrainStep(model, specs, {}, optim::sgd()), InputError);
  CHECK_THROWS_AS(optim::EvalStep(nullptr, {}, {}), InputError);
  CHECK_THROWS_AS(optim::EvalStep(model, {}, {}), InputError);
  optim::TrainStep step(model, specs, squared_error, optim::sgd());
  CHECK_THROWS_WITH_AS(step.run(NAN), "the learning rate of step 1 is nan", InputError);
  CHECK_THROWS_AS(step.set_step(-1), InputError);
  CHECK_THROWS_AS(optim::TrainStep(
                      model, specs,
                      [](nn::Module& m, std::span<const Tensor> in) {
                        return optim::StepResult{sum(m(in[0])), {{"all", m(in[0])}}};
                      },
                      optim::sgd()),
                  TypeError);

  optim::Lookahead lookahead(*model);
  *model->find("0.weight") = Tensor::ones({5, 5});
  CHECK_THROWS_AS(lookahead.update(0.5), TypeError);
}

TEST_CASE("an evaluation goes by the parameters that the model has now") {
  const auto model = std::make_shared<nn::Linear>(3, 2);
  model->initialise(1);
  optim::EvalStep step(model, {{"x", {f32, {4, 3}}}}, [](nn::Module& m, std::span<const Tensor> in) {
    return std::vector<optim::NamedTensor>{{"y", m(in[0])}};
  });
  const Array ones = Array::full(f32, {4, 3}, 1);
  CHECK(step.run(std::span(&ones, 1))[0].at(0) != 3);
  for (const char* name : {"weight", "bias"}) {
    Tensor& parameter = *model->find(name);
    parameter =
        name == std::string("weight") ? Tensor::ones(parameter.shape()) : Tensor::zeros(parameter.shape());
  }
  CHECK(step.run(std::span(&ones, 1))[0].to_doubles() == std::vector<double>(8, 3));
}

TEST_CASE("parameters that share memory cannot both be updated in place") {
  auto model = std::make_shared<nn::Sequential>();
  for (int i = 0; i < 2; ++i) model->append(std::make_shared<nn::Linear>(3, 3));
  model->initialise(1);
  *model->find("1.weight") = *model->find("0.weight");
  CHECK_THROWS_WITH_AS(
      optim::TrainStep(
          model, {{"x", {f32, {2, 3}}}},
          [](nn::Module& m, std::span<const Tensor> in) { return optim::StepResult{sum(m(in[0]))}; },
          optim::sgd()),
      doctest::Contains("'0.weight' and '1.weight' share memory"), InputError);
}
