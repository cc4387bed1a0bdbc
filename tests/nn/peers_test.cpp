#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <millrace/nn.h>
#include <millrace/optim.h>

#include "support/npz.h"
#include "track/safetensors.h"

using namespace millrace;

namespace {

/// The targets of the peers' models.py for a batch.
Array peer_target(const nn::Model& model, const Shape& output) {
  const int64_t batch = output[0].size();
  if (model.task == nn::Task::binary) {
    Array target(f32, {batch});
    for (int64_t i = 0; i < batch; ++i) target.set(i, static_cast<double>(i % 2));
    return target;
  }
  const bool tokens = model.task == nn::Task::tokens;
  Array target(i64, tokens ? Shape{batch, output[1]} : Shape{batch});
  const int64_t classes = output.back().size();
  for (int64_t i = 0; i < target.count(); ++i) target.set_int(i, i % classes);
  return target;
}

std::vector<double> losses_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file).at("losses").get<std::vector<double>>();
}

}  // namespace

// The files come from `python bench/peers/bench.py train NAME BATCH --opt sgd --dump DIR`. Networks of many batch norms
// amplify rounding within twenty steps: the same with `--threads 1 --dump DIR/again` says how far PyTorch is from itself.
TEST_CASE("training each architecture from PyTorch's weights gives PyTorch's 20 losses") {
  const char* folder = std::getenv("MILLRACE_PEER_DUMPS");
  if (!folder) {
    MESSAGE("skipped: MILLRACE_PEER_DUMPS names no folder of dumps");
    return;
  }
  for (const std::string& name : nn::model_kinds()) {
    const std::filesystem::path base = std::filesystem::path(folder) / name;
    if (!std::filesystem::exists(base.string() + ".losses.json")) continue;
    CAPTURE(name);
    nn::Model model = nn::make_model(name);
    const track::SafeTensors weights(base.string() + ".safetensors");
    size_t loaded = 0;
    for (const auto& list : {model.module->parameters(), model.module->buffers()})
      for (const nn::Named& named : list) {
        REQUIRE_MESSAGE(weights.has(named.name), named.name);
        REQUIRE(weights.type(named.name) == named.tensor->type());
        *named.tensor = weights.tensor(named.name);
        ++loaded;
      }
    CHECK(loaded == weights.names().size());

    const auto inputs = test::read_npz(base.string() + ".inputs.npz");
    std::vector<optim::TensorSpec> specs;
    std::vector<Type> types;
    for (const nn::InputSpec& input : model.inputs) {
      const Array& array = inputs.at(input.name);
      specs.push_back({input.name, array.type()});
      types.push_back(array.type());
    }
    const Array target = peer_target(model, nn::output_type(*model.module, types).shape);
    specs.push_back({"target", target.type()});
    optim::TrainStep step(
        model.module, specs,
        [&](nn::Module& module, std::span<const Tensor> in) {
          return optim::StepResult{nn::task_loss(model.task, module(in.first(in.size() - 1)), in.back())};
        },
        optim::sgd({.momentum = 0.9}));
    for (size_t i = 0; i < model.inputs.size(); ++i)
      step.bind_input(static_cast<int>(i), inputs.at(model.inputs[i].name));
    step.bind_input(static_cast<int>(model.inputs.size()), target);
    const std::vector<double> losses = losses_in(base.string() + ".losses.json");
    double worst = 0, spread = 0;
    for (const double expected : losses) {
      step.run(1e-3);
      worst = std::max(worst, std::abs(step.loss() - expected));
    }
    const std::filesystem::path again = std::filesystem::path(folder) / "again" / (name + ".losses.json");
    if (std::filesystem::exists(again)) {
      const std::vector<double> others = losses_in(again);
      for (size_t i = 0; i < losses.size(); ++i)
        spread = std::max(spread, std::abs(others.at(i) - losses[i]));
    }
    CHECK(worst < std::max(1e-3, 2 * spread));
    MESSAGE(name, ": largest difference of ", losses.size(), " losses: ", worst,
            "; PyTorch's from itself: ", spread);
  }
}
