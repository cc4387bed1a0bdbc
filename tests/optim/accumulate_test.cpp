// A batch that is worked off in parts within one step.
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/operator.h>
#include <millrace/optim.h>
#include <millrace/random.h>

#include "base/thread_pool.h"
#include "optim/model_scope.h"
#include "support/graphs.h"

using namespace millrace;

namespace {

using Optimizer = std::shared_ptr<const optim::Optimizer>;

/// A network, its data inputs, and how it is trained.
struct Case {
  std::function<std::shared_ptr<nn::Module>()> model;
  std::vector<optim::TensorSpec> inputs;
  optim::StepFunction function;
  Optimizer optimizer;
  double rate = 0.05;
};

struct Accumulated {
  std::vector<double> losses;
  std::map<std::string, double> metrics;  // of the last step
  std::map<std::string, Array> values;    // parameters and buffers
  int64_t arena = 0;
};

void fill(Array& array, uint64_t stream, uint32_t below) {
  RandomStream random(7, stream);
  for (int64_t i = 0; i < array.count(); ++i)
    if (array.dtype().is_float())
      array.set(i, 2 * random.uniform() - 1);
    else
      array.set_int(i, random.below(below));
}

Accumulated train(const Case& c, int64_t parts, const std::string& precision = "fp32", int steps = 3) {
  const auto model = c.model();
  model->initialise(4);
  optim::TrainOptions options;
  options.seed = 9;
  options.accumulate = parts;
  options.compile.precision = precision;
  optim::TrainStep step(model, c.inputs, c.function, c.optimizer, options);
  Accumulated result;
  for (int s = 0; s < steps; ++s) {
    for (int i = 0; i < step.input_count(); ++i) fill(step.input(i), static_cast<uint64_t>(10 * s + i), 5);
    step.run(c.rate);
    CHECK(step.sound());
    result.losses.push_back(step.loss());
  }
  for (const auto& [name, value] : step.metrics()) result.metrics[name] = value;
  for (const nn::Named& named : optim::tensors_of(*model))
    result.values[named.name] = named.tensor->to_array().clone();
  result.arena = step.program().arena_bytes();
  return result;
}

double largest_difference(const Accumulated& a, const Accumulated& b) {
  double worst = 0;
  for (const auto& [name, array] : a.values)
    for (int64_t i = 0; i < array.count(); ++i)
      worst = std::max(worst, std::fabs(array.at(i) - b.values.at(name).at(i)));
  for (size_t s = 0; s < a.losses.size(); ++s) worst = std::max(worst, std::fabs(a.losses[s] - b.losses[s]));
  return worst;
}

optim::StepResult classify(nn::Module& model, std::span<const Tensor> x) {
  const Tensor logits = model(x[0]);
  return {cross_entropy(logits, x[1]), {{"accuracy", mean(cast(equal(argmax(logits, 1), x[1]), f32))}}};
}

Case layers(const std::vector<std::string>& lines, int64_t batch, Optimizer optimizer) {
  return {[lines] {
            return nn::make_layers(lines, {3, 12, 12}).module;
          },
          {{"x", {f32, {batch, 3, 12, 12}}}, {"labels", {i64, {batch}}}},
          classify,
          std::move(optimizer)};
}

const std::vector<std::string> plain = {"conv 8 3",   "gelu",    "conv 8 3", "relu",
                                        "max-pool 2", "flatten", "linear 5"};

/// An embedding whose rows a second input, the same for all items, weighs.
Case table(Optimizer optimizer, int64_t rows) {
  return {[rows] { return std::make_shared<nn::Embedding>(rows, 6); },
          {{"ids", {i64, {12, 2}}}, {"target", {f32, {12, 2, 6}}}, {"weight", {f32, {6}}}},
          [](nn::Module& model, std::span<const Tensor> x) {
            return optim::StepResult{mse_loss(model(x[0]) * x[2], x[1])};
          },
          std::move(optimizer)};
}

}  // namespace

TEST_CASE("a batch in parts trains as the whole batch does") {
  const std::vector<std::pair<std::string, Optimizer>> optimizers = {
      {"sgd", optim::sgd({.momentum = 0.9, .common = {.weight_decay = 1e-3}})},
      {"clipped", optim::sgd({.momentum = 0.9, .common = {.clip_norm = 0.1}})},
      {"adamw", optim::adamw({.epsilon = 1e-3, .common = {.weight_decay = 0.1}})}};
  for (const auto& [name, optimizer] : optimizers) {
    CAPTURE(name);
    const Case c = layers(plain, 12, optimizer);
    const Accumulated whole = train(c, 1);
    for (const int64_t parts : {2, 3, 12}) {
      CAPTURE(parts);
      const Accumulated cut = train(c, parts);
      CHECK(largest_difference(whole, cut) < 1e-5);
      for (const auto& [metric, value] : whole.metrics)
        CHECK(cut.metrics.at(metric) == doctest::Approx(value).epsilon(1e-5));
    }
    CHECK(largest_difference(whole, train(layers(plain, 11, optimizer), 1)) > 1e-3);  // it could fail
  }
}

TEST_CASE("tables get the sum of the parts' rows, lazily or not, small or large") {
  for (const int64_t rows : {9, 200000})
    for (const auto& optimizer :
         {optim::adam({.epsilon = 1e-3, .common = {.clip_norm = 0.05, .lazy = true}}), optim::sgd(),
          optim::adamw({.epsilon = 1e-3}), optim::adagrad({.epsilon = 1e-3})}) {
      CAPTURE(rows);
      const Case c = table(optimizer, rows);
      const Accumulated whole = train(c, 1), cut = train(c, 3);
      CHECK(largest_difference(whole, cut) < 1e-5);
      // What stays rows for the whole batch stays rows in parts: no dense gradient.
      if (rows == 200000) CHECK(cut.arena < 2 * rows * 4);
    }
}

TEST_CASE("fp16's loss scale and bf16 go with parts") {
  for (const std::string& precision : test::precisions_here({"fp16", "bf16", "bf16-pure"})) {
    CAPTURE(precision);
    const Case c = layers(plain, 12, optim::sgd({.momentum = 0.9}));
    CHECK(largest_difference(train(c, 1, precision), train(c, 3, precision)) < 2e-2);
  }
}

TEST_CASE("each part drops out other elements, another step yet others") {
  // The loss is the mean of what dropout leaves of ones: 2·(how many stay) / 64 in each part.
  const Case c = {[] {
                    auto model = std::make_shared<nn::Sequential>();
                    model->append(std::make_shared<nn::Linear>(1, 1));
                    model->append(std::make_shared<nn::Dropout>(0.5));
                    return model;
                  },
                  {{"x", {f32, {2, 64, 1}}}, {"by", {f32, {64, 1}}}},
                  [](nn::Module& model, std::span<const Tensor> x) {
                    const Tensor mask = cast(not_equal(model(x[0] * 0 + 1), 0), f32);
                    return optim::StepResult{(mask * x[1]).sum() + (model(x[0]) * 0).sum()};
                  },
                  optim::sgd()};
  const auto model = c.model();
  model->initialise(4);
  // Weights ±1 for the two parts would cancel if both drew the same mask: they see one each through a whole
  // input.
  const auto loss = [&](int64_t parts, std::vector<double>& seen) {
    optim::TrainOptions options;
    options.seed = INT64_MAX;  // the second part's wraps
    options.accumulate = parts;
    optim::TrainStep step(model, c.inputs, c.function, c.optimizer, options);
    fill(step.input(0), 1, 5);
    for (int s = 0; s < 2; ++s)
      for (int bit = 0; bit < 64; ++bit) {
        step.set_step(s);
        for (int i = 0; i < 64; ++i) step.input(1).set(i, i == bit ? 1 : 0);
        step.run(0);
        seen.push_back(step.loss());
      }
  };
  std::vector<double> seen;
  loss(2, seen);  // the mean over the parts of mask[bit]: 0, 1/2 or 1
  const auto count = [&](double value, size_t from, size_t to) {
    int n = 0;
    for (size_t i = from; i < to; ++i) n += seen[i] == value ? 1 : 0;
    return n;
  };
  CHECK(count(0.5, 0, 64) > 16);  // equal masks would give 0 and 1 only
  CHECK(count(0.5, 0, 64) < 48);
  CHECK(count(0, 0, 64) + count(0.5, 0, 64) + count(1, 0, 64) == 64);
  CHECK(std::vector<double>(seen.begin(), seen.begin() + 64) !=
        std::vector<double>(seen.begin() + 64, seen.end()));
}

TEST_CASE("batch norm's running statistics go from part to part") {
  const std::vector<std::string> lines = {"conv 4 3", "batch-norm", "relu", "flatten", "linear 5"};
  {
    Case c = layers(lines, 12, optim::sgd());
    c.rate = 0;
    const Accumulated cut = train(c, 3, "fp32", 1);
    // The parts as batches of their own, one after the other; at rate 0 the parameters stay.
    const auto model = c.model();
    model->initialise(4);
    optim::TrainStep step(model, {{"x", {f32, {4, 3, 12, 12}}}, {"labels", {i64, {4}}}}, classify,
                          optim::sgd());
    Array x(f32, {12, 3, 12, 12}), labels(i64, {12});
    fill(x, 0, 5);
    fill(labels, 1, 5);
    double loss = 0;
    for (int64_t part = 0; part < 3; ++part) {
      for (int64_t i = 0; i < step.input(0).count(); ++i)
        step.input(0).set(i, x.at(part * step.input(0).count() + i));
      for (int64_t i = 0; i < 4; ++i) step.input(1).set_int(i, labels.int_at(part * 4 + i));
      step.run(0);
      loss += step.loss() / 3;
    }
    CHECK(cut.losses[0] == doctest::Approx(loss).epsilon(1e-5));
    REQUIRE(model->buffers().size() >= 2);
    for (const nn::Named& buffer : model->buffers()) {
      CAPTURE(buffer.name);
      const Array expected = buffer.tensor->to_array();
      for (int64_t i = 0; i < expected.count(); ++i)
        CHECK(cut.values.at(buffer.name).at(i) == doctest::Approx(expected.at(i)).epsilon(1e-5).scale(1e-2));
    }
  }
}

TEST_CASE("a batch that cannot be divided is refused") {
  const Case c = layers(plain, 12, optim::sgd());
  CHECK_THROWS_WITH_AS((void)train(c, 5), doctest::Contains("batch of 12"), InputError);
  CHECK_THROWS_WITH_AS((void)train(c, 5), doctest::Contains("accumulate = 5"), InputError);
  CHECK_THROWS_AS((void)train(c, 0), InputError);
  CHECK_THROWS_AS((void)train(c, 24), InputError);
  Case scalar = c;
  scalar.inputs[0].type.shape = {};
  CHECK_THROWS_AS((void)train(scalar, 2), InputError);
}

TEST_CASE("parts need the memory of one, and do not depend on threads") {
  std::vector<std::string> lines;
  for (int block = 0; block < 4; ++block)
    for (const char* line : {"conv 16 3", "batch-norm", "gelu", "dropout 0.1"}) lines.emplace_back(line);
  for (const char* line : {"max-pool 2", "flatten", "linear 5"}) lines.emplace_back(line);
  const Case c = layers(lines, 64, optim::adamw());
  const Accumulated whole = train(c, 1), one = train(c, 4);
  int64_t gradients = 0;
  for (const auto& [name, array] : one.values) gradients += array.bytes();
  CHECK(one.arena < 0.3 * static_cast<double>(whole.arena) + static_cast<double>(gradients));
  for (const int threads : {1, 3}) {
    ThreadPool::set_default_threads(threads);
    const Accumulated other = train(c, 4);
    for (const auto& [name, array] : one.values) CHECK(array.identical(other.values.at(name)));
    CHECK(other.losses == one.losses);
  }
  ThreadPool::set_default_threads(0);
}

TEST_CASE("the compiled parts agree with the reference back end, and a fault is found in them") {
  const std::vector<std::string> lines = {"conv 4 3",    "batch-norm", "relu",
                                          "dropout 0.2", "flatten",    "linear 5"};
  const Case c = layers(lines, 8, optim::adamw({.common = {.clip_norm = 1}}));
  const auto model = c.model();
  model->initialise(4);
  optim::TrainStep step(model, c.inputs, c.function, c.optimizer, {.accumulate = 2});
  fill(step.input(0), 1, 5);
  fill(step.input(1), 2, 5);
  for (int s = 0; s < 3; ++s) CHECK(step.run_verified(1e-2) == "");
  step.input(0).set(step.input(0).count() - 1, NAN);  // of the last part
  const Array before = model->parameters()[0].tensor->to_array().clone();
  step.run(1e-2);
  CHECK(!step.sound());
  CHECK(step.find_non_finite().find("input 'x'") != std::string::npos);
  CHECK(model->parameters()[0].tensor->to_array().identical(before));
}
