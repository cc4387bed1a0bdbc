#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>

#include "base/format.h"
#include "base/size_text.h"
#include "support/graphs.h"

using namespace millrace;

namespace {

struct Measured {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> gradients;  // of the first step
  std::map<std::string, std::string> choices;
  int64_t bytes = 0, activations = 0;
  bool repeats = false;  // whether something is computed again
};

using Choices = std::map<std::string, std::string>;

/// Some steps on the same batch.
Measured train(const nn::Model& model, const Shape& input, int64_t classes, int64_t memory,
               const std::string& precision, int steps = 4, const Choices& choices = {}) {
  model.module->initialise(5);
  optim::TrainOptions options;
  options.compile.memory = memory;
  options.compile.precision = precision;
  options.compile.choices = choices;
  optim::TrainStep step(
      model.module, {{"x", {f32, input}}, {"labels", {i64, {input[0]}}}},
      [](nn::Module& module, std::span<const Tensor> x) {
        return optim::StepResult{cross_entropy(module(x[0]), x[1])};
      },
      optim::sgd({.momentum = 0.9}), options);
  for (int64_t i = 0; i < step.input(0).count(); ++i) step.input(0).set(i, std::sin(static_cast<double>(i)));
  for (int64_t i = 0; i < step.input(1).count(); ++i) step.input(1).set_int(i, i % classes);
  Measured result;
  for (int i = 0; i < steps; ++i) {
    step.run(0.01);
    result.losses.push_back(step.loss());
    if (i > 0) continue;
    for (const auto& [name, momentum] : step.state())  // which the first gradient is
      result.gradients[name] = momentum.to_doubles();
  }
  result.choices = step.program().choices();
  result.activations = step.program().arena_bytes();
  result.bytes = result.activations + step.program().bound_bytes();
  for (const LaunchInfo& launch : step.program().launches())
    result.repeats = result.repeats || launch.origin.again;
  return result;
}

nn::Model small_network(int blocks = 4) {
  std::vector<std::string> lines;
  for (int block = 0; block < blocks; ++block)
    for (const char* line : {"conv 16 3", "batch-norm", "gelu", "dropout 0.1"}) lines.emplace_back(line);
  for (const char* line : {"max-pool 2", "flatten", "linear 10"}) lines.emplace_back(line);
  return nn::make_layers(lines, {3, 16, 16});
}

}  // namespace

TEST_CASE("with less memory a step computes activations again, and trains alike") {
  for (const std::string& precision : test::precisions_here({"fp32", "bf16"})) {
    CAPTURE(precision);
    const nn::Model model = small_network(8);
    const Shape input{32, 3, 16, 16};
    const Measured free = train(model, input, 10, 0, precision);
    CHECK(!free.repeats);
    // How far it can fall depends on what is chosen by timing: the kernels' scratch memory, in bf16 also what
    // stays in f32, which may leave nothing to save.
    int64_t budget = 0;
    const auto less = [&]() -> std::optional<Measured> {
      for (const int part : {6, 12, 24}) {
        budget = free.bytes - free.activations / part;
        try {
          return train(model, input, 10, budget, precision, 4, free.choices);
        } catch (const InputError&) {
        }
      }
      return std::nullopt;
    };
    const std::optional<Measured> found = less();
    if (precision == "bf16" && !found) {
      MESSAGE("this machine's kernels leave nothing to save in bf16");
      continue;
    }
    REQUIRE(found);
    const Measured& tight = *found;
    // In bf16 what is computed again may vanish in its readers' nests.
    if (precision == "fp32") CHECK(tight.repeats);
    CHECK(tight.bytes <= budget);
    for (size_t i = 0; i < free.losses.size(); ++i)
      CHECK(tight.losses[i] == doctest::Approx(free.losses[i]).epsilon(precision == "fp32" ? 1e-5 : 2e-2));
    // More than is needed changes nothing.
    CHECK(train(model, input, 10, free.bytes, precision, 4, free.choices).losses == free.losses);
  }
}

TEST_CASE("gradients are the same at half of the activations") {
  std::vector<std::string> lines;  // (no biases before norms: nothing but rounding is their gradient)
  for (int block = 0; block < 8; ++block)
    for (const char* line : {"conv 16 3 bias=0", "batch-norm", "gelu", "dropout 0.1"})
      lines.emplace_back(line);
  for (const char* line : {"max-pool 2", "flatten", "linear 10"}) lines.emplace_back(line);
  const nn::Model model = nn::make_layers(lines, {3, 16, 16});
  const Shape input{64, 3, 16, 16};
  const Measured free = train(model, input, 10, 0, "fp32", 1);
  const int64_t budget = free.bytes - free.activations / 2;
  const Measured tight = train(model, input, 10, budget, "fp32", 1);
  CHECK(tight.repeats);
  CHECK(tight.bytes <= budget);
  REQUIRE(free.gradients.size() == model.module->parameters().size());
  for (const auto& [name, expected] : free.gradients) {
    CAPTURE(name);
    double off = 0, whole = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      off += std::pow(tight.gradients.at(name)[i] - expected[i], 2);
      whole += expected[i] * expected[i];
    }
    CHECK(std::sqrt(off / whole) < 5e-5);
  }
}

TEST_CASE("sizes of memory are between a byte and 10^18") {
  CHECK(parse_bytes("memory", "1.5GB") == 1.5e9);
  CHECK(parse_bytes("memory", "800 MB") == 8e8);
  CHECK(parse_bytes("memory", "1") == 1);
  // What is less would mean "no limit", what is more has no whole number.
  for (const char* text :
       {"0.4", "0.0000000001GB", "0", "-1GB", "1e10GB", "1e30GB", "inf", "nan", "GB", "5 TB", ""})
    CHECK_THROWS_AS((void)parse_bytes("memory", text), InputError);
  CHECK_THROWS_AS((void)train(small_network(), {32, 3, 16, 16}, 10, -1, "fp32"), InputError);
}

TEST_CASE("too little memory is refused, with what is needed at least") {
  std::string message;
  try {
    (void)train(small_network(), {32, 3, 16, 16}, 10, 100'000, "fp32");
  } catch (const InputError& e) {
    message = e.what();
  }
  CHECK(message.find("a step needs at least about") != std::string::npos);
  CHECK(message.find("only 0.10 MB are allowed") != std::string::npos);
}

TEST_CASE("mixed precision needs no more memory than fp32") {
  const nn::Model model = small_network();
  const Shape input{64, 3, 16, 16};
  const int64_t full = train(model, input, 10, 0, "fp32").bytes;
  for (const std::string& precision : test::precisions_here({"bf16", "fp16"})) {
    CAPTURE(precision);
    CHECK(train(model, input, 10, 0, precision).bytes <= full);
  }
}
