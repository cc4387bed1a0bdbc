#include "train/init_weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/contains.h"
#include "base/format.h"
#include "base/suggest.h"
#include "base/words.h"
#include "ir/first_along.h"
#include "nn/models/architecture.h"
#include "optim/model_scope.h"
#include "task/model.h"
#include "task/recipe.h"
#include "track/safetensors.h"
#include "track/weight_names.h"
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
    anchor_run_paths(run, recipe);
    return task::load_task(std::move(recipe), encoding);
  } catch (const Error&) {
    return std::nullopt;  // it says the classes, which a file of weights alone does not
  }
}

/// Adapters are no part of what a file of weights has: they begin anew.
bool is_adapter(const std::string& name) { return name.ends_with(".lora.a") || name.ends_with(".lora.b"); }

/// What trainings with adapters saved is as one without: what these add is in the weights.
void merge_adapters(Given& given) {
  const std::string end = ".lora.a";
  std::vector<std::string> layers;
  for (const auto& [name, array] : given.tensors)
    if (name.ends_with(end)) layers.push_back(name.substr(0, name.size() - end.size()));
  for (const std::string& layer : layers) {
    const auto a = given.tensors.find(layer + end), b = given.tensors.find(layer + ".lora.b"),
               weight = given.tensors.find(layer + ".weight");
    if (!given.task || b == given.tensors.end() || weight == given.tensors.end())
      fail<InputError>(
          "train.init_from: {} has adapters (train.lora), and not beside it the recipe of its run, or not "
          "their weights: name the run's folder",
          given.name);
    nn::Adapter adapter(a->second.shape()[1].size(), b->second.shape()[0].size(), a->second.shape()[0].size(),
                        given.task->recipe.train.lora_alpha);
    *adapter.find("a") = Tensor(a->second);
    *adapter.find("b") = Tensor(b->second);
    weight->second = adapter.merged(weight->second);
    given.tensors.erase(a);
    given.tensors.erase(b);
  }
}

std::vector<std::string> names_of(const std::vector<nn::Named>& wanted) {
  std::vector<std::string> names;
  for (const nn::Named& each : wanted) names.push_back(each.name);
  return names;
}

/// The rules of the recipe; each must be about a tensor of the file, and say a name of the model.
std::vector<track::NameRule> own_rules(const task::Task& task, const Given& given,
                                       const std::vector<nn::Named>& wanted) {
  std::vector<track::NameRule> rules;
  std::vector<std::string> theirs, ours = names_of(wanted);
  for (const auto& [name, array] : given.tensors) theirs.push_back(name);
  for (const std::string& text : task.recipe.train.init_names) {
    rules.push_back(track::parse_name_rule(text));
    const track::NameRule& rule = rules.back();
    std::string target;
    for (const std::string& name : theirs)
      if (const auto found = rule.target(name); found && target.empty()) target = *found;
    if (target.empty())
      fail<InputError>("train.init_names: '{}': {} has no tensor of such a name{}", text, given.name,
                       did_you_mean(rule.from, theirs, theirs.empty() ? "" : ", but " + few_names(theirs)));
    if (!contains(ours, target))
      fail<InputError>("train.init_names: '{}': the model has no '{}'{}", text, target,
                       did_you_mean(target, ours, ", but " + few_names(ours)));
  }
  return rules;
}

/// Tensors of other programs under the model's names: as the recipe says, else as its architecture knows
/// them; there may be something in front of all, of what held the model.
void rename(Given& given, const task::Task& task, const std::vector<nn::Named>& wanted) {
  const std::vector<track::NameRule> own = own_rules(task, given, wanted);
  std::map<std::string, Array> theirs, named;
  for (auto& [name, array] : given.tensors)
    (track::renamed(name, own).rule ? named : theirs).emplace(name, array);
  named = track::rename_tensors(named, own);
  std::vector<track::NameRule> known;
  if (const nn::Architecture* kind = nn::architectures().find(task.network->model().kind))
    for (const std::string& rule : kind->foreign) known.push_back(track::parse_name_rule(rule));
  const std::vector<std::string> names = names_of(wanted);
  std::string best;
  int64_t most = -1;
  for (const std::string prefix : {"", "model.", "module.", "_orig_mod.", "bert.", "0.auto_model."}) {
    const auto fits = std::count_if(theirs.begin(), theirs.end(), [&](const auto& item) {
      return item.first.starts_with(prefix) &&
             std::find(names.begin(), names.end(),
                       track::renamed(item.first.substr(prefix.size()), known).name) != names.end();
    });
    if (fits <= most) continue;
    most = fits;
    best = prefix;
  }
  // What is beside the part with that in front (a head beside "bert.") keeps its name.
  std::map<std::string, Array> stripped;
  for (const auto& [name, array] : theirs)
    stripped.insert_or_assign(name.starts_with(best) ? name.substr(best.size()) : name, array);
  for (auto& [name, array] : track::rename_tensors(stripped, known))
    if (!named.emplace(name, array).second)
      fail<InputError>("train.init_from: two tensors of {} would become {}: train.init_names says so of one",
                       given.name, name);
  given.tensors = std::move(named);
}

Given given_by(const task::Task& task, const std::vector<nn::Named>& wanted) {
  const fs::path path = task::expand(task.recipe.train.init_from);
  Given given{path.string(), {}, {}};
  const auto take = [&](const Checkpoint& checkpoint, const fs::path& run) {
    for (const auto& [name, array] : checkpoint.tensors)
      if (name.starts_with("model.")) given.tensors.emplace(name.substr(6), array);
    given.name += fmt::format(" (step {})", checkpoint.step);
    given.task = task_of(run, checkpoint.encoding);
    merge_adapters(given);
  };
  if (fs::is_directory(path)) {
    take(load_checkpoint(RunFolder::open(path).path(), "").checkpoint, path);
  } else {
    const track::SafeTensors file(path);
    const auto format = file.metadata().find("format");
    if (format != file.metadata().end() && format->second == "millrace-checkpoint")
      take(read_checkpoint(path), path.parent_path().parent_path());
    else
      for (const std::string& name : file.names()) given.tensors.emplace(name, file.tensor(name));
  }
  rename(given, task, wanted);
  return given;
}

/// Rows of a table of tokens: of one that knows more of them, as the mask, those that mean the same are
/// taken.
void take_shared_rows(Given& given, const task::Task& task, const std::vector<nn::Named>& wanted) {
  if (!given.task || given.task->inputs.size() != 1 || task.inputs.size() != 1) return;
  const int64_t shared = task.inputs[0]->shared_ids(*given.task->inputs[0]);
  for (const nn::Named& named : wanted) {
    const Shape& own = named.tensor->shape();
    const auto found = given.tensors.find(named.name);
    if (shared == 0 || found == given.tensors.end() || own.rank() != 2 || own[0] != shared) continue;
    const Array& theirs = found->second;
    if (theirs.shape().rank() != 2 || theirs.shape()[1] != own[1] || theirs.shape()[0].size() <= shared)
      continue;
    found->second = first_along(theirs, 0, shared);
  }
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

/// What a file has that the model does not: where names differ, train.init_names can say so.
std::string other_names(const Given& given, const std::vector<nn::Named>& wanted,
                        const std::vector<std::string>& lacking) {
  if (lacking.empty()) return "";
  const std::vector<std::string> ours = names_of(wanted);
  std::vector<std::string> spare;
  for (const auto& [name, array] : given.tensors)
    if (!contains(ours, name)) spare.push_back(name);
  if (spare.empty()) return "";
  const std::string close = near(lacking[0], spare);
  return fmt::format(". It has {} that the model has not ({}){}: train.init_names says which is which",
                     spare.size(), few_names(spare),
                     close.empty() ? "" : fmt::format("; is {} its '{}'?", lacking[0], close));
}

void set_value(const nn::Named& named, const Array& value) {
  Array array = optim::value_of(named);
  array.assign(value.converted(array.dtype()));
}

}  // namespace

std::vector<std::string> init_weights(task::Task& task) {
  if (task.recipe.train.init_from.empty()) return {};
  std::vector<nn::Named> wanted = task.network->parameters();
  std::set<std::string> weights;
  std::erase_if(wanted, [](const nn::Named& each) { return is_adapter(each.name); });
  for (const nn::Named& each : wanted) weights.insert(each.name);
  for (const nn::Named& buffer : task.network->buffers()) wanted.push_back(buffer);
  Given given = given_by(task, wanted);
  take_shared_rows(given, task, wanted);
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
        "train.init_from: {} does not fit the model{}{}; all but the head must be there in the same shapes{}",
        given.name,
        lacking.empty()
            ? ""
            : fmt::format(": it lacks {} of {}: {}", lacking.size(), wanted.size(), few_names(lacking)),
        unlike.empty() ? "" : fmt::format("; {} of other shapes: {}", unlike.size(), few_names(unlike)),
        other_names(given, wanted, lacking));
  if (std::none_of(taken.begin(), taken.end(),
                   [&](const nn::Named* each) { return weights.contains(each->name); }))
    fail<InputError>("train.init_from: {} has no weights of the model (such as {})", given.name,
                     wanted.empty() ? "none" : wanted[0].name);
  for (const nn::Named* named : taken) require_usable(given, *named, given.tensors.at(named->name));
  for (const nn::Named* named : taken) {
    set_value(*named, given.tensors.at(named->name));
    given.tensors.erase(named->name);
  }
  for (const auto& [name, array] : given.tensors)
    if (!contains(fresh, name)) unused.push_back(name);
  std::vector<std::string> lines = {
      fmt::format("weights of {}: {} of {} tensors taken", given.name, taken.size(), wanted.size())};
  if (!fresh.empty()) lines[0] += fmt::format("; new, as the head is for others: {}", few_names(fresh));
  if (!unused.empty()) lines[0] += fmt::format("; not used: {}", few_names(unused));
  for (size_t i = 0; given.task && i < std::min(task.inputs.size(), given.task->inputs.size()); ++i)
    if (task.inputs[i]->encoding() != given.task->inputs[i]->encoding())
      lines.push_back(fmt::format(
          "what was learnt of {} (means, vocabularies) is of the new data, and differs from that of {}",
          task::input_key(task.inputs[i]->section()), given.name));
  return lines;
}

}  // namespace millrace::train
