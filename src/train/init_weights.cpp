#include "train/init_weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/format.h"
#include "optim/model_scope.h"
#include "task/model.h"
#include "task/recipe.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

namespace millrace::train {
namespace {

namespace fs = std::filesystem;

/// What another training left.
struct Given {
  std::string name;
  std::map<std::string, Array> tensors;
  std::optional<task::Task> task;  // where the recipe of its run is there
};

/// The recipe that a checkpoint was trained by lies two folders above it.
std::optional<task::Task> task_of(const fs::path& run, const std::string& encoding) {
  try {
    task::Recipe recipe = task::load_recipe(RunFolder::open(run).recipe());
    task::anchor_paths(recipe);
    return task::load_task(std::move(recipe), encoding);
  } catch (const Error&) {
    return std::nullopt;  // it says the classes, which a file of weights alone does not
  }
}

/// Files of other programs have names with what held the model in front.
std::map<std::string, Array> without_prefix(track::NamedArrays tensors,
                                            const std::vector<nn::Named>& wanted) {
  std::map<std::string, Array> found;
  for (auto& [name, array] : tensors) found.emplace(name, array);
  std::string best;
  int64_t most = -1;
  for (const std::string prefix : {"", "model.", "module.", "_orig_mod."}) {
    const auto fits = std::count_if(wanted.begin(), wanted.end(), [&](const nn::Named& each) {
      return found.contains(prefix + each.name);
    });
    if (fits <= most) continue;
    most = fits;
    best = prefix;
  }
  std::map<std::string, Array> named;
  for (const auto& [name, array] : found)
    if (name.starts_with(best)) named.emplace(name.substr(best.size()), array);
  return named;
}

Given given_by(const std::string& source, const std::vector<nn::Named>& wanted) {
  const fs::path path = task::expand(source);
  Given given{path.string(), {}, {}};
  const auto take = [&](const Checkpoint& checkpoint, const fs::path& run) {
    for (const auto& [name, array] : checkpoint.tensors)
      if (name.starts_with("model.")) given.tensors.emplace(name.substr(6), array);
    given.name += fmt::format(" (step {})", checkpoint.step);
    given.task = task_of(run, checkpoint.encoding);
  };
  if (fs::is_directory(path)) {
    take(load_checkpoint(RunFolder::open(path).path(), "").checkpoint, path);
    return given;
  }
  const track::SafeTensors file(path);
  if (const auto format = file.metadata().find("format");
      format != file.metadata().end() && format->second == "millrace-checkpoint")
    take(read_checkpoint(path), path.parent_path().parent_path());
  else
    given.tensors = without_prefix(track::read_safetensors(path), wanted);
  return given;
}

/// The names of parameters that belong to heads that must be new, as the classes are others.
std::set<std::string> heads_of_others(const task::Task& task, const Given& given,
                                      const std::vector<std::vector<std::string>>& heads) {
  std::set<std::string> names;
  if (!given.task) return names;
  for (size_t i = 0; i < task.outputs.size(); ++i) {
    const task::Output& own = *task.outputs[i];
    const auto& others = given.task->outputs;
    const auto same = std::find_if(others.begin(), others.end(), [&](const auto& other) {
      return other->name() == own.name() && other->classes() == own.classes() &&
             other->width() == own.width();
    });
    if (same == others.end()) names.insert(heads[i].begin(), heads[i].end());
  }
  return names;
}

/// "a, b, c and 12 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t most = 6;
  const size_t shown = std::min(names.size(), most);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<int64_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

/// Weights that no training can go on from are those of a training that failed.
void require_usable(const Given& given, const nn::Named& named, const Array& value) {
  if (!value.dtype().is_float() && named.trainable)
    fail<InputError>("train.init_from: {} has {} as {}, and weights are floats", given.name, named.name,
                     value.dtype().name());
  const Array wide = value.converted(f32);
  const std::span<const float> values = wide.as<float>();
  const auto odd = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  if (odd != values.end())
    fail<InputError>("train.init_from: {} has a value in {} that is no finite number ({})", given.name,
                     named.name, *odd);
}

void set_value(const nn::Named& named, const Array& value) {
  Array array = optim::value_of(named);
  array.assign(value.converted(array.dtype()));
}

}  // namespace

std::vector<std::string> init_weights(task::Task& task) {
  const std::string& source = task.recipe.train.init_from;
  if (source.empty()) return {};
  std::vector<nn::Named> wanted = task.network->parameters();
  for (const nn::Named& buffer : task.network->buffers()) wanted.push_back(buffer);
  Given given = given_by(source, wanted);
  const auto heads = task::head_parameters(task);
  std::set<std::string> in_heads;
  for (const auto& names : heads) in_heads.insert(names.begin(), names.end());
  const std::set<std::string> others = heads_of_others(task, given, heads);
  std::vector<std::string> lacking, unlike, fresh, unused;
  std::vector<const nn::Named*> taken;
  for (const nn::Named& named : wanted) {
    const auto found = given.tensors.find(named.name);
    const bool head = in_heads.contains(named.name), there = found != given.tensors.end();
    const Shape& shape = named.tensor->shape();
    if (there && found->second.shape() == shape && !others.contains(named.name))
      taken.push_back(&named);
    else if (head)
      fresh.push_back(named.name);
    else if (there)
      unlike.push_back(
          fmt::format("{} {} instead of {}", named.name, found->second.shape().str(), shape.str()));
    else if (shape.rank() > 0)  // counters of statistics are not in all files
      lacking.push_back(named.name);
  }
  if (!lacking.empty() || !unlike.empty())
    fail<InputError>(
        "train.init_from: {} does not fit the model{}{}; all but the head must be there in the same shapes",
        given.name,
        lacking.empty()
            ? ""
            : fmt::format(": it lacks {} of {}: {}", lacking.size(), wanted.size(), some_of(lacking)),
        unlike.empty() ? "" : fmt::format("; {} of other shapes: {}", unlike.size(), some_of(unlike)));
  if (std::none_of(taken.begin(), taken.end(), [](const nn::Named* each) { return each->trainable; }))
    fail<InputError>("train.init_from: {} has no weights of the model (such as {})", given.name,
                     wanted.empty() ? "none" : wanted[0].name);
  for (const nn::Named* named : taken) require_usable(given, *named, given.tensors.at(named->name));
  for (const nn::Named* named : taken) {
    set_value(*named, given.tensors.at(named->name));
    given.tensors.erase(named->name);
  }
  for (const auto& [name, array] : given.tensors)
    if (std::find(fresh.begin(), fresh.end(), name) == fresh.end()) unused.push_back(name);
  std::vector<std::string> lines = {
      fmt::format("weights of {}: {} of {} tensors taken", given.name, taken.size(), wanted.size())};
  if (!fresh.empty()) lines[0] += fmt::format("; new, as the head is for others: {}", some_of(fresh));
  if (!unused.empty()) lines[0] += fmt::format("; not used: {}", some_of(unused));
  for (size_t i = 0; given.task && i < std::min(task.inputs.size(), given.task->inputs.size()); ++i)
    if (task.inputs[i]->encoding() != given.task->inputs[i]->encoding())
      lines.push_back(fmt::format(
          "what was learnt of {} (means, vocabularies) is of the new data, and differs from that of {}",
          task::input_key(task.inputs[i]->section()), given.name));
  return lines;
}

}  // namespace millrace::train
