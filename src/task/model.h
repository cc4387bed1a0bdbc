// The model of a task: from the arrays of its inputs to the logits of its outputs, in one graph.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/program.h>

#include "nn/models/combine.h"
#include "optim/rates.h"
#include "task/task.h"

namespace millrace::task {

/// Raw arrays → Input::graph() → architecture → logits of each output. Its parameters have the names that the
/// architecture gives them (of several inputs or outputs those of nn::Combined). The inputs and outputs of
/// the task must stay; the task itself may be moved.
class Network : public nn::Module {
 public:
  /// `fits`: of each input what nn::Model::fit was of its own network; may be empty.
  Network(const Task& task, nn::Model model, std::vector<std::function<void(const Array&)>> fits = {});
  /// Logits of each output. `fields`: of each input its fields(), with `training` each input's
  /// training_fields() behind its own.
  std::vector<Tensor> logits(std::span<const Tensor> fields, bool training);
  /// What the architecture takes, of the same.
  std::vector<Tensor> features(std::span<const Tensor> fields, bool training) const;
  /// The logits of all outputs side by side, in evaluation.
  Tensor forward_many(std::span<const Tensor> fields) override;

  /// Does the network of this input take something from the data?
  bool fits(size_t input) const { return input < fits_.size() && fits_[input]; }
  /// It takes that from some thousand samples: the array of the input's only field. Once, after
  /// make_network().
  void fit(size_t input, const Array& samples);

  const nn::Model& model() const { return model_; }

 private:
  std::vector<const Input*> inputs_;
  nn::Model model_;
  nn::Combined* combined_ = nullptr;  // of several inputs or outputs
  std::vector<std::function<void(const Array&)>> fits_;
};

/// Builds the recipe's architecture for the task's inputs and outputs and draws the parameters. InputError
/// names the model, layer or shape that is wrong: the logits of each output must be [batch, width], or
/// [batch, length, width] where it is at places.
///
/// `to_train`: InputError, too, when a step of training cannot fit into this machine, before weights are
/// drawn: they, what the optimiser keeps for them, and what their gradients need of the activations, which
/// train.memory could compute again, are more.
void make_network(Task& task, bool to_train = false);
/// Sets what networks take from the data (Network::fit), where they do. `reading`: the training samples.
void fit_network(Task& task, const Reading& reading);

/// Of each output the parameters and buffers behind the last product or convolution: its head.
std::vector<std::vector<std::string>> head_parameters(const Task& task);

/// The names of all parameters, in the order in which a prediction comes to use them.
std::vector<std::string> parameters_by_use(const Task& task);

/// What the recipe says of rates by name and by layer.
optim::Rates rates_of(const Task& task);

/// The arrays of a feed as a compiled step takes them; `batch` and `length` where they are not 0.
std::vector<optim::TensorSpec> specs_of(std::span<const data::Field> fields, int64_t batch, int64_t length);

/// Losses and progress of all outputs on the arrays of a feed (sample_feed.h: mixed.*, mix, weights; targets'
/// `counted`): the function of a training step. `fields`: the feed's. With one output the metrics are
/// "accuracy", with several "NAME.loss" and "NAME.accuracy".
optim::StepFunction step_function(const Task& task, std::vector<data::Field> fields);
/// The names of the step's metrics, in order.
std::vector<std::string> step_metrics(const Task& task);

/// With the choices recorded so far; `memory` as in train.memory.
CompileOptions compile_options(const Task& task, const std::string& precision,
                               const std::string& memory = "");

/// The bytes of the model as .onnx: raw inputs (pictures u8, sounds f32, numbers of tables f64 with NaN for
/// missing ones, texts of categories, tokens i64) → logits and predictions of each output. `height`, `width`:
/// of decoded pictures that the model brings to its size itself, as evaluation does; 0: the model's own.
/// InputError when it takes no pictures, or larger ones. `opset`: as of onnx::ExportOptions. `notes`: columns
/// whose arrays have other names than they have.
std::string export_model(const Task& task, std::vector<std::string>& notes, int height = 0, int width = 0,
                         int opset = 0);

}  // namespace millrace::task
