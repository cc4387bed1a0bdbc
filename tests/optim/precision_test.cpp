#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>

#include "base/thread_pool.h"
#include "optim/model_scope.h"
#include "support/small_steps.h"

using namespace millrace;

namespace {

void check_same(const std::map<std::string, Array>& a, const std::map<std::string, Array>& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, array] : a) {
    CAPTURE(name);
    CHECK(array.identical(b.at(name)));
  }
}

int64_t bytes_of(const std::map<std::string, Array>& values, const std::string& prefix) {
  int64_t bytes = 0;
  for (const auto& [name, array] : values)
    if (name.starts_with(prefix)) bytes += array.bytes();
  return bytes;
}

/// y = w·x, or a chain of such layers, without biases.
std::shared_ptr<nn::Sequential> chain(int64_t width, int layers) {
  auto model = std::make_shared<nn::Sequential>();
  for (int i = 0; i < layers; ++i) model->append(std::make_shared<nn::Linear>(width, width, false));
  model->initialise(1);
  return model;
}

/// A step whose loss is the sum of the outputs times the second input.
std::unique_ptr<optim::TrainStep> weighted_sum(const std::shared_ptr<nn::Module>& model, int64_t width,
                                               std::shared_ptr<const optim::Optimizer> optimizer,
                                               const optim::TrainOptions& options) {
  return std::make_unique<optim::TrainStep>(
      model, std::vector<optim::TensorSpec>{{"x", {f32, {2, width}}}, {"by", {f32, {2, width}}}},
      [](nn::Module& m, std::span<const Tensor> in) { return optim::StepResult{(m(in[0]) * in[1]).sum()}; },
      std::move(optimizer), options);
}

void fill(Array& array, double value) {
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, value);
}

double value_in(const optim::TrainStep& step, const std::string& name) {
  for (const auto& [other, array] : step.state())
    if (other == name) return array.at(0);
  FAIL("no state ", name);
  return 0;
}

optim::TrainOptions with_precision(const std::string& precision, optim::LossScaling scaling = {}) {
  optim::TrainOptions options;
  options.compile.precision = precision;
  options.loss_scaling = scaling;
  return options;
}

}  // namespace

TEST_CASE("bf16-pure stores parameters and optimiser state in half the memory, statistics in f32") {
  for (const std::string& network : test::small_networks()) {
    CAPTURE(network);
    const test::SmallStep wide = test::make_small_step(network, "bf16"),
                          pure = test::make_small_step(network, "bf16-pure");
    const auto before = wide.values(), after = pure.values();
    for (const nn::Named& p : pure.model->parameters()) CHECK(p.tensor->dtype() == bf16);
    for (const nn::Named& b : pure.model->buffers()) CHECK(b.tensor->dtype() != bf16);
    int64_t parameters = 0;
    for (const nn::Named& p : wide.model->parameters()) parameters += p.tensor->type().bytes();
    const int64_t state = bytes_of(before, "state ");
    CHECK(bytes_of(after, "state ") * 2 == state);
    const int64_t saved = wide.step->program().bound_bytes() - pure.step->program().bound_bytes();
    int64_t copies = 0;  // that the mixed precision keeps
    for (const CopyInfo& copy : wide.step->program().copies())
      if (copy.why_not.empty()) copies += copy.type.bytes();
    CHECK(saved == (parameters + state) / 2 + copies);
    // Where products compute in f32, all or those that are measured to be faster so, they need f32 copies for
    // a while.
    const auto mixes = [](const test::SmallStep& made) {
      const auto& choices = made.step->program().choices();
      return std::any_of(choices.begin(), choices.end(), [](const auto& c) { return c.second == "f32"; });
    };
    if (pure.step->program().precision() == "bf16" && !mixes(pure) && !mixes(wide))
      CHECK(pure.step->program().arena_bytes() <= (wide.step->program().arena_bytes() + copies) * 1.05);
  }
}

TEST_CASE("bf16-pure trains every kind of network about as well as fp32") {
  for (const std::string& network : test::small_networks()) {
    CAPTURE(network);
    test::SmallStep exact = test::make_small_step(network),
                    pure = test::make_small_step(network, "bf16-pure");
    double first = 0;
    for (int i = 0; i < 30; ++i) {
      exact.step->run(1e-3);
      pure.step->run(1e-3);
      if (i == 0) first = exact.step->loss();
    }
    const double learnt = first - exact.step->loss();
    CHECK(learnt > 0);
    CHECK(std::abs(pure.step->loss() - exact.step->loss()) < 0.15 * learnt + 0.02);
  }
}

TEST_CASE("bf16-pure steps do not depend on threads, and go on from where state was kept, bit for bit") {
  for (const std::string& network : test::small_networks()) {
    CAPTURE(network);
    test::SmallStep whole = test::make_small_step(network, "bf16-pure");
    for (int i = 0; i < 6; ++i) whole.step->run(1e-2);
    const auto choices = whole.step->program().choices();
    for (const int threads : {1, 3}) {
      ThreadPool::set_default_threads(threads);
      test::SmallStep half = test::make_small_step(network, "bf16-pure", choices);
      for (int i = 0; i < 3; ++i) half.step->run(1e-2);
      const auto kept = half.values();
      test::SmallStep resumed = test::make_small_step(network, "bf16-pure", choices);
      for (const nn::Named& named : optim::tensors_of(*resumed.model))
        *named.tensor = Tensor(kept.at(named.name));
      for (auto& [name, array] : resumed.step->state())
        std::memcpy(array.data(), kept.at("state " + name).data(), static_cast<size_t>(array.bytes()));
      resumed.step->set_step(3);
      for (int i = 0; i < 3; ++i) resumed.step->run(1e-2);
      check_same(resumed.values(), whole.values());
    }
  }
  ThreadPool::set_default_threads(0);
}

TEST_CASE("updates below bf16's resolution are not lost: moments and weights move on average") {
  constexpr int64_t width = 64;
  const auto model = chain(width, 1);
  for (float& w : model->find("0.weight")->to_array().as<float>()) w = 1;
  const auto step = weighted_sum(model, width, optim::adam(), with_precision("bf16-pure"));
  fill(step->input(0), 0.5);
  fill(step->input(1), 1);  // every gradient is 1
  constexpr int steps = 200;
  for (int i = 0; i < steps; ++i) step->run(1e-4);
  double weights = 0, second = 0;
  const Array now = model->find("0.weight")->to_array();
  for (int64_t i = 0; i < now.count(); ++i) weights += now.at(i) / static_cast<double>(now.count());
  for (const auto& [name, array] : step->state())
    if (name.starts_with("exp_avg_sq"))
      for (int64_t i = 0; i < array.count(); ++i) second += array.at(i) / static_cast<double>(array.count());
  CHECK(weights == doctest::Approx(1 - steps * 1e-4).epsilon(0.001));  // to the nearest, 1 would stay 1
  CHECK(second == doctest::Approx(1 - std::pow(0.999, steps)).epsilon(0.02));
}

TEST_CASE("bf16-pure agrees with the reference back end, whatever the optimiser") {
  const std::vector<std::shared_ptr<const optim::Optimizer>> all = {
      optim::sgd(), optim::sgd({.momentum = 0.9, .nesterov = true}), optim::adagrad(), optim::adamw(),
      optim::adam({.common = {.weight_decay = 0.01, .clip_norm = 1}})};
  for (const auto& optimizer : all) {
    const auto model = chain(32, 2);
    const auto step = weighted_sum(model, 32, optimizer, with_precision("bf16-pure"));
    fill(step->input(0), 0.3);
    fill(step->input(1), -0.01);
    for (int i = 0; i < 3; ++i) CHECK(step->run_verified(0.01) == "");
  }
}

TEST_CASE("a model stored as bf16 evaluates, draws new values, and goes back to f32") {
  const auto model = chain(32, 2);
  const Array before = model->find("0.weight")->to_array().clone();
  model->store_parameters(bf16);
  CHECK(model->find("0.weight")->dtype() == bf16);
  optim::EvalStep eval(model, {{"x", {f32, {Dim::named("batch"), 32}}}},
                       [](nn::Module& m, std::span<const Tensor> in) {
                         return std::vector<optim::NamedTensor>{{"y", m(in[0])}};
                       });
  const Array x = Array::full(f32, {3, 32}, 0.5);
  const Array y = eval.run(std::span(&x, 1))[0].clone();
  CHECK(y.dtype() == f32);
  model->store_parameters(f32);
  const Array same = (*model)(Tensor(x)).to_array();
  for (int64_t i = 0; i < y.count(); ++i) CHECK(same.at(i) == doctest::Approx(y.at(i)).epsilon(1e-5));
  model->store_parameters(bf16);
  model->initialise(1);
  CHECK(model->find("0.weight")->to_array().identical(before.converted(bf16)));
  CHECK_THROWS_AS(optim::Lookahead{*model}, InputError);
  CHECK_THROWS_AS(model->store_parameters(f16), InputError);
}

TEST_CASE("fp16: a step whose gradients overflow is skipped and halves the scale") {
  const auto model = chain(16, 2);
  const auto step =
      weighted_sum(model, 16, optim::adam({.common = {.clip_norm = 1}}), with_precision("fp16"));
  fill(step->input(0), 1);
  fill(step->input(1), 4);  // 4 · 65536 and 4 · 32768, gradients of the output, are more than f16 holds
  const Array before = model->find("0.weight")->to_array().clone();
  for (const double scale : {65536, 32768}) {
    step->run(0.1);
    CHECK(step->sound());
    CHECK(std::isfinite(step->loss()));
    CHECK(step->metrics().back() == std::pair<std::string, double>{"loss_scale", scale});
    CHECK(model->find("0.weight")->to_array().identical(before));
    CHECK(value_in(*step, "exp_avg.0.weight") == 0);
    CHECK(value_in(*step, "loss_scale") == scale / 2);
  }
  CHECK(value_in(*step, "skipped_steps") == 2);
  while (value_in(*step, "skipped_steps") == static_cast<double>(step->step())) step->run(0.1);
  // Adam's first update moves every weight by the learning rate, however many steps were skipped before.
  const Array after = model->find("0.weight")->to_array();
  for (int64_t i = 0; i < after.count(); ++i)
    CHECK(std::abs(after.at(i) - before.at(i)) == doctest::Approx(0.1).epsilon(0.001));
  CHECK(value_in(*step, "good_steps") == 1);
}

TEST_CASE("fp16: the scale doubles after so many good steps, up to a limit") {
  const auto model = chain(16, 1);
  const auto step = weighted_sum(model, 16, optim::sgd(), with_precision("fp16", {1024, 3}));
  fill(step->input(0), 1);
  fill(step->input(1), 1e-3);
  std::vector<double> scales;
  for (int i = 0; i < 7; ++i) {
    step->run(1e-3);
    scales.push_back(step->metrics().back().second);
  }
  CHECK(scales == std::vector<double>{1024, 1024, 1024, 2048, 2048, 2048, 4096});
  fill(step->input(1), 0);  // no gradient overflows
  for (int i = 0; i < 60; ++i) step->run(1e-3);
  CHECK(step->metrics().back().second == 1 << 24);
  for (const optim::LossScaling& bad : {optim::LossScaling{0, 1}, {NAN, 1}, {1e30, 1}, {8, 0}})
    CHECK_THROWS_AS(weighted_sum(model, 16, optim::sgd(), with_precision("fp16", bad)), InputError);
}

TEST_CASE("fp16: small gradients survive by the scale, and vanish without") {
  for (const double scale : {1.0, 65536.0}) {
    const auto model = chain(16, 2);
    const auto step = weighted_sum(model, 16, optim::sgd(), with_precision("fp16", {scale, 1000}));
    const Array before = model->find("0.weight")->to_array().clone();
    fill(step->input(0), 1);
    fill(step->input(1), 1e-8);  // the smallest f16 is 6e-8
    step->run(1e5);
    CHECK(model->find("0.weight")->to_array().identical(before) == (scale == 1));
  }
}

TEST_CASE("fp16: values overflow where a GPU's would, and the operation is named") {
  for (const std::string target : {"cpu", "ref"}) {
    CAPTURE(target);
    const auto model = chain(16, 2);
    optim::TrainOptions options = with_precision("fp16");
    options.compile.target = target;
    const auto step = weighted_sum(model, 16, optim::sgd(), options);
    fill(step->input(0), 6e4);
    fill(step->input(1), 1e-9);
    for (float& w : model->find("0.weight")->to_array().as<float>()) w = 0.06f;  // 16 · 0.06 · 6e4 < 65504
    step->run(1e-3);
    CHECK(std::isfinite(step->loss()));
    for (float& w : model->find("0.weight")->to_array().as<float>()) w = 0.08f;
    step->run(1e-3);
    CHECK_FALSE(step->sound());
    CHECK(step->find_non_finite().find("matmul in layer '0'") != std::string::npos);
  }
}

TEST_CASE("fp16 agrees with the reference, and with itself when it goes on") {
  for (const std::string& network : test::small_networks()) {
    CAPTURE(network);
    test::SmallStep whole = test::make_small_step(network, "fp16");
    for (int i = 0; i < 4; ++i) whole.step->run(1e-3);
    test::SmallStep half = test::make_small_step(network, "fp16", whole.step->program().choices());
    for (int i = 0; i < 2; ++i) half.step->run(1e-3);
    CHECK(half.step->sound());
    const auto kept = half.values();
    test::SmallStep resumed = test::make_small_step(network, "fp16", whole.step->program().choices());
    for (const nn::Named& named : optim::tensors_of(*resumed.model))
      *named.tensor = Tensor(kept.at(named.name));
    for (auto& [name, array] : resumed.step->state())
      std::memcpy(array.data(), kept.at("state " + name).data(), static_cast<size_t>(array.bytes()));
    resumed.step->set_step(2);
    for (int i = 0; i < 2; ++i) resumed.step->run(1e-3);
    check_same(resumed.values(), whole.values());
  }
  const auto model = chain(32, 2);
  const auto step = weighted_sum(model, 32, optim::adamw(), with_precision("fp16"));
  fill(step->input(0), 0.3);
  fill(step->input(1), 0.5);
  for (int i = 0; i < 4; ++i) CHECK(step->run_verified(0.01) == "");
}

TEST_CASE("fp16: the reference skips the steps that are skipped, however near to overflow they are") {
  for (const std::string& network : test::small_networks()) {
    CAPTURE(network);
    test::SmallStep small = test::make_small_step(network, "fp16");
    const auto scale = [&]() -> Array {
      for (auto& [name, array] : small.step->state())
        if (name == "loss_scale") return array;
      return {};
    };
    scale().set(0, 0x1p40);
    // The largest scale without overflow, by steps that the slow reference does not judge.
    for (double before = 0; before != scale().at(0);) {
      before = scale().at(0);
      small.step->run(0);
    }
    CHECK(scale().at(0) < 0x1p35);
    scale().set(0, scale().at(0) * 8);
    int steps = 0;
    for (double before = 0; before != scale().at(0); ++steps) {
      CAPTURE(steps);
      before = scale().at(0);
      CHECK(small.step->run_verified(0) == "");
    }
    CHECK(steps > 2);
    CHECK(steps < 8);
  }
}
