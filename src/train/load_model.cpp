#include "train/load_model.h"

#include <algorithm>

#include "base/contains.h"
#include "base/format.h"
#include "optim/model_scope.h"
#include "task/fitting.h"
#include "task/model.h"
#include "train/averages.h"
#include "train/calibration_file.h"
#include "train/control.h"
#include "train/run_folder.h"

namespace millrace::train {

namespace {

/// Names such settings of a section: "input.tta".
void add_evaluation_keys(const task::Section& section, const std::string& key,
                         std::vector<std::string>& keys) {
  for (const Setting& setting : section.settings.declared())
    if (setting.evaluation) keys.push_back(key + "." + setting.name);
}

void require_evaluation_keys(const task::Recipe& recipe, std::span<const std::string> changes) {
  std::vector<std::string> keys;
  for (const task::Section& input : recipe.inputs) add_evaluation_keys(input, task::input_key(input), keys);
  for (const task::Section& output : recipe.outputs)
    add_evaluation_keys(output, task::output_key(output), keys);
  for (const std::string& change : changes) {
    const std::string key = change.substr(0, change.find('='));
    if (key.starts_with("eval.") || contains(keys, key)) continue;
    keys.insert(keys.begin(), "those of [eval]");
    fail<InputError>("'{}': of a trained model only this can be changed: {}", change, fmt::join(keys, ", "));
  }
}

/// The precision that a run had at a checkpoint, where it was changed on the way.
void use_precision(task::Recipe& recipe, const RunFolder& run, const Checkpoint& checkpoint) {
  bool changed = false;
  for (const Applied& entry : read_journal(run.journal()))
    if (entry.change.key == "train.precision") {
      if (entry.step <= checkpoint.step) apply_changes(recipe, {&entry.change, 1});
      changed = true;
    }
  if (!changed) return;
  // One that was written just before the change is of the same step.
  const bool halves = std::any_of(
      checkpoint.tensors.begin(), checkpoint.tensors.end(),
      [](const auto& tensor) { return tensor.first.starts_with("model.") && tensor.second.dtype() == bf16; });
  std::string& precision = recipe.train.precision;
  if (halves != (precision == "bf16-pure")) precision = halves ? "bf16-pure" : "bf16";
}

}  // namespace

task::Task load_model(const std::filesystem::path& path, std::vector<std::string>& warnings,
                      std::span<const std::string> changes, const std::string& which, int64_t* step) {
  const RunFolder run = RunFolder::open(path);
  const Loaded loaded = load_checkpoint(run.path(), which);
  warnings.insert(warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
  if (!which.empty())
    warnings.push_back(fmt::format("checkpoint: {}, step {}", which, loaded.checkpoint.step));
  task::Recipe recipe = task::load_recipe(run.recipe(), changes);
  require_evaluation_keys(recipe, changes);
  anchor_run_paths(run.path(), recipe);
  use_precision(recipe, run, loaded.checkpoint);
  task::Task task = task::load_task(recipe, loaded.checkpoint.encoding);
  task::make_network(task);
  restore_model(task, loaded.checkpoint);
  use_averages(*task.network, loaded.checkpoint);
  read_calibration(run.path(), task, loaded.checkpoint.step, warnings);
  if (step) *step = loaded.checkpoint.step;
  return task;
}

void store_model(const task::Task& task, Checkpoint& checkpoint) {
  checkpoint.encoding = task.encoding();
  checkpoint.choices = task.choices;
  for (const nn::Named& named : optim::tensors_of(*task.network))
    checkpoint.tensors.emplace_back("model." + named.name, optim::value_of(named));
}

const Array& stored_array(const Checkpoint& checkpoint, const std::string& name) {
  const Array* const found = checkpoint.tensor(name);
  if (!found)
    fail<InputError>(
        "the checkpoint has no tensor '{}': the model, optimizer or train.precision of its run is another",
        name);
  return *found;
}

void restore_array(const Checkpoint& checkpoint, const std::string& name, Array& array, bool converts) {
  const Array& stored = stored_array(checkpoint, name);
  if (converts && stored.shape() == array.shape() && stored.dtype().is_float() && array.dtype().is_float()) {
    array.assign(stored.dtype() == array.dtype() ? stored : stored.converted(array.dtype()));
    return;
  }
  if (stored.type() != array.type())
    fail<InputError>(
        "the checkpoint's '{}' is {}, the recipe's model wants {}{}", name, stored.type().str(),
        array.type().str(),
        stored.dtype() == array.dtype()
            ? ""
            : ": go on with the train.precision that the run was begun with, or give another one "
              "behind --resume, which converts it");
  array.assign(stored);
}

void restore_model(task::Task& task, const Checkpoint& checkpoint, bool converts) {
  if (checkpoint.encoding != task.encoding())
    fail<InputError>("what the checkpoint knows of the data is not what this program would write");
  task.choices = checkpoint.choices;
  if (task.recipe.train.precision == "bf16-pure") task.network->store_parameters(bf16);
  nn::Fitted* const fitted = task::fitted_model(task);
  for (const nn::Named& named : optim::tensors_of(*task.network)) {
    // How large these are came from the data.
    if (fitted) {
      *named.tensor = Tensor(stored_array(checkpoint, "model." + named.name));
      continue;
    }
    Array array = optim::value_of(named);
    restore_array(checkpoint, "model." + named.name, array, converts);
  }
  if (fitted) fitted->check();
}

}  // namespace millrace::train
