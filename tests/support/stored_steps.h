// Values that other libraries' optimisers gave for one small model, as scripts in tools/ wrote them.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/tensor.h>

namespace millrace::testing {

struct Stored {
  std::string name;
  std::vector<double> curve, values;  // losses or rates; final parameters or fixed arrays
};

/// One list of them.
class StoredValues {
 public:
  explicit StoredValues(std::vector<Stored> all) : all_(std::move(all)) {}
  const Stored& at(const std::string& name) const {
    for (const Stored& each : all_)
      if (each.name == name) return each;
    throw std::runtime_error("no stored values " + name);
  }

  /// The model that they are of, as it began.
  std::shared_ptr<nn::Sequential> model() const {
    auto model = std::make_shared<nn::Sequential>();
    model->append(std::make_shared<nn::Linear>(4, 3));
    model->append(nn::tanh());
    model->append(std::make_shared<nn::Linear>(3, 2));
    int i = 0;
    for (const nn::Named& p : model->parameters())
      *p.tensor = Array::of(f32, p.tensor->shape(), at("start " + std::to_string(i++)).values);
    return model;
  }

  /// Its step on their batch.
  std::unique_ptr<optim::TrainStep> step(const std::shared_ptr<nn::Module>& model,
                                         std::shared_ptr<const optim::Optimizer> optimizer,
                                         const optim::TrainOptions& options = {}) const {
    auto step = std::make_unique<optim::TrainStep>(
        model, std::vector<optim::TensorSpec>{{"x", {f32, {6, 4}}}, {"y", {f32, {6, 2}}}},
        [](nn::Module& m, std::span<const Tensor> in) {
          return optim::StepResult{mse_loss(m(in[0]), in[1])};
        },
        std::move(optimizer), options);
    step->bind_input(0, Array::of(f32, {6, 4}, at("x").values));
    step->bind_input(1, Array::of(f32, {6, 2}, at("y").values));
    return step;
  }

 private:
  std::vector<Stored> all_;
};

}  // namespace millrace::testing
