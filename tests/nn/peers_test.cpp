#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <millrace/nn.h>
#include <millrace/optim.h>

#include "optim/model_scope.h"
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

/// Numbers in [-1, 1) that are a function of a name and a position, as tools/reference_values_peers.py has
/// it.
std::vector<double> formula(const std::string& name, int64_t count) {
  uint32_t start = 2166136261;
  for (const char c : name) start = (start ^ static_cast<uint8_t>(c)) * 16777619;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t x = static_cast<uint32_t>(i) + start;
    x = (x ^ (x >> 16)) * 0x7feb352d;
    x = (x ^ (x >> 15)) * 0x846ca68b;
    x ^= x >> 16;
    values.push_back(std::ldexp(static_cast<double>(x >> 8), -23) - 1);
  }
  return values;
}

/// Sets the parameters by the formula; returns how many numbers they are.
int64_t fill_parameters(nn::Module& model) {
  int64_t count = 0;
  for (const nn::Named& p : model.parameters()) {
    const Shape shape = p.tensor->shape();
    std::vector<double> values = formula(p.name, shape.count());
    const double fan_in = static_cast<double>(shape.count()) / static_cast<double>(shape[0].size());
    for (double& v : values)
      if (shape.rank() > 1)
        v *= std::sqrt(3 / fan_in);
      else
        v = p.name.ends_with("weight") ? 1 + v / 4 : v / 8;
    *p.tensor = Array::of(f32, shape, values);
    count += shape.count();
  }
  return count;
}

struct Peer {
  std::string name;
  double lr;
  int64_t parameters;
  std::vector<double> losses;
};

const std::vector<Peer>& peers() {
  static const std::vector<Peer> all = {
#include "nn/peers_values.inc"
  };
  return all;
}

nn::Model small_peer(const std::string& name) {
  if (name == "gpt")
    return nn::make_model("gpt", {.input = {16}, .vocabulary = 50, .width = 32, .depth = 2, .heads = 4});
  if (name == "lstm") return nn::make_model("lstm", {.input = {20}});
  if (name == "residual")
    return nn::make_layers({"conv 16 3 bias=0", "batch-norm", "relu", "residual 16 3",
                            "residual 32 3 stride=2", "global-avg-pool", "linear 10"},
                           {3, 12, 12});
  return nn::make_model(name);
}

int64_t batch_of(const std::string& name) {
  return name == "mlp" ? 16 : name == "lenet" ? 8 : name == "gpt" ? 4 : 6;
}

std::vector<double> losses_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file).at("losses").get<std::vector<double>>();
}

}  // namespace

TEST_CASE("training small models from weights made by a formula gives PyTorch's 20 losses") {
  REQUIRE(peers().size() == 5);
  for (const Peer& peer : peers()) {
    CAPTURE(peer.name);
    const nn::Model model = small_peer(peer.name);
    CHECK(fill_parameters(*model.module) == peer.parameters);
    const nn::InputSpec& input = model.inputs[0];
    const Type data{input.type.dtype, input.type.shape.specialise({{"batch", batch_of(peer.name)}})};
    std::vector<double> values = formula("x", data.shape.count());
    if (!data.dtype.is_float())
      for (double& v : values) v = std::floor((v + 1) / 2 * input.high);
    const Array target = peer_target(model, nn::output_type(*model.module, {&data, 1}).shape);
    optim::TrainStep step(
        model.module, {{"x", data}, {"target", target.type()}},
        [&](nn::Module& module, std::span<const Tensor> in) {
          return optim::StepResult{nn::task_loss(model.task, module(in[0]), in[1])};
        },
        optim::sgd({.momentum = 0.9}));
    step.bind_input(0, Array::of(data.dtype, data.shape, values));
    step.bind_input(1, target);
    REQUIRE(peer.losses.size() == 20);
    for (const double expected : peer.losses) {
      step.run(peer.lr);
      CHECK(step.loss() == doctest::Approx(expected).epsilon(1e-4));
    }
  }
}

// The files come from `python bench/peers/bench.py train NAME BATCH --opt sgd --dump DIR`. Networks of many
// batch norms amplify rounding within twenty steps: the same with `--threads 1 --dump DIR/again` says how far
// PyTorch is from itself.
TEST_CASE("training each architecture of which there is a dump gives PyTorch's 20 losses") {
  const char* folder = std::getenv("MILLRACE_PEER_DUMPS");
  if (!folder) {
    MESSAGE("skipped: MILLRACE_PEER_DUMPS names no folder of dumps");
    return;
  }
  int found = 0;
  for (const std::string& name : nn::model_kinds()) {
    const std::filesystem::path base = std::filesystem::path(folder) / name;
    if (!std::filesystem::exists(base.string() + ".losses.json")) continue;
    CAPTURE(name);
    ++found;
    nn::Model model = nn::make_model(name);
    const track::SafeTensors weights(base.string() + ".safetensors");
    size_t loaded = 0;
    for (const nn::Named& named : optim::tensors_of(*model.module)) {
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
  CHECK_MESSAGE(found > 0, "no dump in ", folder);
}
