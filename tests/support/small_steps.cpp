#include "support/small_steps.h"

#include <stdexcept>

#include <millrace/random.h>

#include "optim/model_scope.h"

namespace millrace::test {
namespace {

constexpr int64_t kTokens = 65, kWidth = 96, kLength = 33;

class Block : public nn::Module {
 public:
  Block()
      : norm1_(make<nn::LayerNorm>("norm1", kWidth)),
        attention_(make<nn::MultiheadAttention>("attention", kWidth, 6, true)),
        norm2_(make<nn::LayerNorm>("norm2", kWidth)),
        wide_(make<nn::Linear>("wide", kWidth, 4 * kWidth)),
        narrow_(make<nn::Linear>("narrow", 4 * kWidth, kWidth)),
        dropout_(make<nn::Dropout>("dropout", 0.1)) {}
  Tensor forward(const Tensor& x) override {
    const Tensor y = x + dropout_(attention_(norm1_(x)));
    return y + dropout_(narrow_(gelu(wide_(norm2_(y)))));
  }

 private:
  nn::LayerNorm& norm1_;
  nn::MultiheadAttention& attention_;
  nn::LayerNorm& norm2_;
  nn::Linear &wide_, &narrow_;
  nn::Dropout& dropout_;
};

nn::Model transformer() {
  auto layers = std::make_shared<nn::Sequential>();
  layers->append(std::make_shared<nn::Embedding>(kTokens, kWidth));
  for (int i = 0; i < 2; ++i) layers->append(std::make_shared<Block>());
  layers->append(std::make_shared<nn::LayerNorm>(kWidth));
  layers->append(std::make_shared<nn::Linear>(kWidth, kTokens));
  return {
      "transformer", layers, {{"x0", {i64, {Dim::named("batch"), kLength}}, 0, kTokens}}, nn::Task::tokens};
}

struct Network {
  nn::Model model;
  int64_t batch;
  std::shared_ptr<const optim::Optimizer> optimizer;
};

Network network_named(const std::string& name) {
  if (name == "lenet") return {nn::make_model("lenet"), 16, optim::sgd({.momentum = 0.9, .nesterov = true})};
  if (name == "residual")
    return {nn::make_layers({"conv 16 3", "batch-norm", "relu", "max-pool 2", "residual 32 3 stride=2",
                             "residual 32 3", "global-avg-pool", "dropout 0.1", "linear 10"},
                            {3, 28, 28}),
            11, optim::adamw({.common = {.weight_decay = 0.01}})};
  if (name == "transformer")
    return {transformer(), 5, optim::adamw({.common = {.weight_decay = 0.01, .clip_norm = 1}})};
  if (name == "lstm")
    return {nn::make_model("lstm", {.input = {12}}), 7, optim::adam({.common = {.lazy = true}})};
  throw std::invalid_argument(name);
}

void fill(Array& array, double low, double high, uint64_t stream) {
  RandomStream random(7, stream);
  for (int64_t i = 0; i < array.count(); ++i) {
    if (array.dtype().is_float())
      array.set(i, 2 * random.uniform() - 1);
    else
      array.set_int(i, static_cast<int64_t>(low) + random.below(static_cast<uint32_t>(high - low)));
  }
}

}  // namespace

const std::vector<std::string>& small_networks() {
  static const std::vector<std::string> names = {"lenet", "residual", "transformer", "lstm"};
  return names;
}

std::map<std::string, Array> SmallStep::values() const {
  std::map<std::string, Array> found;
  for (const nn::Named& named : optim::tensors_of(*model))
    found.emplace(named.name, named.tensor->to_array());
  for (const auto& [name, array] : step->state()) found.emplace("state " + name, array.clone());
  return found;
}

SmallStep make_small_step(const std::string& name, const std::string& precision,
                          const std::map<std::string, std::string>& choices) {
  const Network network = network_named(name);
  const nn::Model& model = network.model;
  model.module->initialise(3);
  const nn::InputSpec& input = model.inputs[0];
  const Type data{input.type.dtype, input.type.shape.specialise({{"batch", network.batch}})};
  const Shape output = nn::output_type(*model.module, {&data, 1}).shape;
  const Type target{i64, Shape(output.begin(), output.end() - 1)};
  optim::TrainOptions options;
  options.seed = 5;
  options.compile.precision = precision;
  options.compile.choices = choices;
  SmallStep made{model.module, nullptr};
  made.step = std::make_unique<optim::TrainStep>(
      model.module, std::vector<optim::TensorSpec>{{"x", data}, {"target", target}},
      [task = model.task](nn::Module& module, std::span<const Tensor> in) {
        return optim::StepResult{nn::task_loss(task, module(in[0]), in[1])};
      },
      network.optimizer, options);
  fill(made.step->input(0), input.low, input.high, 1);
  fill(made.step->input(1), 0, static_cast<double>(output.back().size()), 2);
  return made;
}

}  // namespace millrace::test
