#include <doctest/doctest.h>
#include <optional>
#include <thread>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/program.h>
#include <millrace/random.h>

#include "base/format.h"
#include "support/allocations.h"
#include "support/graphs.h"

using namespace millrace;

namespace {

/// A network with its weights as constants, for a batch of 3.
Graph inference_graph(const nn::Model& model) {
  model.module->initialise(4);
  std::vector<optim::TensorSpec> inputs;
  for (const nn::InputSpec& input : model.inputs) inputs.push_back({input.name, input.type});
  return specialise(optim::build_eval_graph(
                        *model.module, inputs,
                        [](nn::Module& module, std::span<const Tensor> in) {
                          return std::vector<optim::NamedTensor>{{"y", module(in)}};
                        },
                        false),
                    {{"batch", 3}});
}

/// Other values for each caller.
void fill(Array& input, int caller) {
  RandomStream random(7, 1, static_cast<uint64_t>(caller));
  for (int64_t i = 0; i < input.count(); ++i)
    if (input.dtype() == i64)
      input.set_int(i, static_cast<int64_t>(random.uniform() * 20));
    else
      input.set(i, 2 * random.uniform() - 1);
}

Array result_of(Program& program, int caller, int runs) {
  for (int i = 0; i < program.input_count(); ++i) fill(program.input(i), caller);
  for (int run = 0; run < runs; ++run) program.run();
  return program.output(0).clone();
}

nn::Model model_of(const std::string& kind) {
  nn::ModelOptions options{.classes = 5, .vocabulary = 20, .width = 32, .depth = 2, .heads = 2};
  if (kind == "resnet18_cifar" || kind == "mobilenet_v2" || kind == "vit") options.input = {3, 32, 32};
  if (kind == "encoder" || kind == "lstm") options.input = {24};
  return nn::make_model(kind, options);
}

}  // namespace

TEST_CASE("programs of one executable run at the same time and give what each gives alone") {
  // Winograd, packed and depthwise convolutions, products, attention, a loop; generated code in all.
  const auto precisions = test::precisions_here({"fp32", "bf16"});
  for (const char* kind : {"resnet18_cifar", "mobilenet_v2", "encoder", "lstm", "mlp"})
    for (const std::string& precision : precisions) {
      CAPTURE(kind);
      CAPTURE(precision);
      const auto executable = Executable::compile(inference_graph(model_of(kind)), {.precision = precision});
      constexpr int callers = 3;
      std::vector<Array> alone(callers), together(callers);
      for (int c = 0; c < callers; ++c) {
        Program program(executable);
        alone[static_cast<size_t>(c)] = result_of(program, c, 1);
      }
      std::vector<std::thread> threads;
      for (int c = 0; c < callers; ++c)
        threads.emplace_back([&, c] {
          Program program(executable);
          together[static_cast<size_t>(c)] = result_of(program, c, 8);
        });
      for (std::thread& thread : threads) thread.join();
      for (size_t c = 0; c < callers; ++c) CHECK(together[c].identical(alone[c]));
      CHECK(!alone[0].identical(alone[1]));
    }
}

TEST_CASE("one more program of an executable has no copy of the weights") {
  if (!test::allocations_are_counted()) return;
  const nn::Model model = nn::make_model("table", {.width = 1024, .depth = 3, .numbers = 64});
  const auto executable = Executable::compile(inference_graph(model));
  const auto weights = static_cast<long>(4 * model.module->parameter_count());
  REQUIRE(weights > 1'000'000);
  Program first(executable);
  first.run();
  const test::CountAllocations counted;
  Program second(executable);
  second.run();
  CHECK(counted.kept() < weights / 10);
}

TEST_CASE("a program outlives who compiled it, and takes arrays that fit") {
  std::optional<Program> program;
  {
    const auto executable = Executable::compile(inference_graph(model_of("mlp")));
    program.emplace(executable);
    CHECK(program->executable() == executable);
    CHECK_THROWS_AS(Program(executable, {{0, Array(f32, {2, 2})}}), TypeError);
  }
  const Array y = result_of(*program, 1, 1);
  CHECK(y.count() == 3 * 5);
}
