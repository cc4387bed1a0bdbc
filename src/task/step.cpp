// Losses and progress of a training step.
#include <algorithm>

#include "base/format.h"
#include "task/model.h"

namespace millrace::task {
namespace {

/// The arrays of a feed by name, as the step's function gets them.
class StepArrays {
 public:
  StepArrays(std::span<const data::Field> fields, std::span<const Tensor> tensors)
      : fields_(fields), tensors_(tensors) {}
  const Tensor* find(std::string_view name) const {
    for (size_t i = 0; i < fields_.size(); ++i)
      if (fields_[i].name == name) return &tensors_[i];
    return nullptr;
  }
  const Tensor& at(const std::string& name) const {
    if (const Tensor* tensor = find(name)) return *tensor;
    fail<InternalError>("the feed has no array '{}'", name);
  }

 private:
  std::span<const data::Field> fields_;
  std::span<const Tensor> tensors_;
};

std::string counted_name(const Output& output) {
  return (output.from() ? output.from()->prefix() : output.prefix()) + "counted";
}

/// What a row has one of ([batch]), against what it has at each place ([batch, length]).
Tensor for_places(const Tensor& rows, const Tensor& places) {
  return places.rank() == 1 ? rows : reshape(rows, {places.dim(0), 1});
}

/// Loss and progress of one output, both scalars.
struct OutputResult {
  Tensor loss, progress;
};

OutputResult result_of(const Output& output, const Tensor& logits, const StepArrays& arrays) {
  const Tensor *weights = arrays.find("weights"), *counted = arrays.find(counted_name(output)),
               *mix = arrays.find("mix"), *mixed = arrays.find("mixed." + output.target_field());
  const Tensor& target = arrays.at(output.target_field());
  // What does not count is -1, and has the weight 0.
  const Tensor known = counted && !target.dtype().is_float() ? maximum(target, 0) : target;
  Tensor right = output.progress(logits, known);
  if (!weights && !counted && !(mix && mixed)) return {output.loss(logits, target, true), right.mean()};
  Tensor losses = output.loss(logits, known, false);
  if (mix && mixed) {
    // Of two targets, in shares: of the loss and of the progress.
    const Tensor share = for_places(*mix, losses), rest = 1 - share;
    losses = losses * share + output.loss(logits, *mixed, false) * rest;
    right = right * share + output.progress(logits, *mixed) * rest;
  }
  if (weights) losses = losses * for_places(*weights, losses);
  if (counted) {
    losses = losses * *counted;
    right = right * *counted;
  }
  return {losses.mean(), right.mean()};
}

/// What Network::logits() takes in training.
std::vector<Tensor> training_arrays(std::span<const Input* const> inputs, const StepArrays& arrays,
                                    bool changed) {
  std::vector<Tensor> taken;
  for (const Input* input : inputs) {
    for (const data::Field& field : input->fields()) taken.push_back(arrays.at(input->prefix() + field.name));
    for (const data::Field& field : changed ? input->training_fields() : std::vector<data::Field>())
      taken.push_back(arrays.at(input->prefix() + field.name));
  }
  return taken;
}

}  // namespace

optim::StepFunction step_function(const Task& task, std::vector<data::Field> fields) {
  // Not the task itself, which may be moved.
  std::vector<const Input*> inputs;
  std::vector<const Output*> outputs;
  for (const auto& input : task.inputs) inputs.push_back(input.get());
  for (const auto& output : task.outputs) outputs.push_back(output.get());
  return [=, fields = std::move(fields)](nn::Module& module, std::span<const Tensor> tensors) {
    const StepArrays arrays(fields, tensors);
    // A feed of samples as they are has nothing of what changes them at random.
    const bool changed = std::all_of(inputs.begin(), inputs.end(), [&](const Input* input) {
      const auto extra = input->training_fields();
      return std::all_of(extra.begin(), extra.end(),
                         [&](const auto& field) { return arrays.find(input->prefix() + field.name); });
    });
    const auto logits =
        dynamic_cast<Network&>(module).logits(training_arrays(inputs, arrays, changed), changed);
    optim::StepResult all;
    for (size_t i = 0; i < outputs.size(); ++i) {
      OutputResult one = result_of(*outputs[i], logits[i], arrays);
      const double weight = outputs[i]->weight();
      if (outputs.size() > 1) all.metrics.emplace_back(outputs[i]->prefix() + "loss", one.loss);
      all.metrics.emplace_back(outputs[i]->prefix() + outputs[i]->progress_metric().name, one.progress);
      const Tensor weighted = weight == 1 ? one.loss : one.loss * weight;
      all.loss = i == 0 ? weighted : all.loss + weighted;
    }
    return all;
  };
}

std::vector<std::string> step_metrics(const Task& task) {
  std::vector<std::string> names;
  for (const auto& output : task.outputs) {
    if (task.outputs.size() > 1) names.push_back(output->prefix() + "loss");
    names.push_back(output->prefix() + output->progress_metric().name);
  }
  return names;
}

}  // namespace millrace::task
