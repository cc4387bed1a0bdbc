// What is frozen must stay as it is, its statistics included.
#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "optim/model_scope.h"
#include "task/freeze_entry.h"

namespace millrace::check {
namespace {

std::string layer_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

/// Layers all of whose parameters are frozen.
std::set<std::string> frozen_layers(const std::vector<nn::Named>& parameters) {
  std::map<std::string, bool> all;
  for (const nn::Named& p : parameters) {
    const auto [at, first] = all.emplace(layer_of(p.name), !p.trainable);
    at->second = at->second && !p.trainable;
  }
  std::set<std::string> layers;
  for (const auto& [layer, frozen] : all)
    if (frozen) layers.insert(layer);
  return layers;
}

/// Layers that a recipe freezes from the first step on, though nothing was learnt by them.
std::vector<std::string> frozen_as_drawn(const Context& context) {
  std::vector<std::string> layers;
  if (!context.task()) return layers;
  const task::Recipe& recipe = context.task()->recipe;
  if (!recipe.train.init_from.empty() || recipe.model.kind.ends_with(".onnx")) return layers;
  for (const std::string& entry : recipe.train.freeze)
    if (const auto [name, epochs] = task::parse_freeze(entry); epochs == 0) layers.push_back(name);
  return layers;
}

Finding run_frozen(Context& context) {
  const auto parameters = context.model()->parameters(), buffers = context.model()->buffers();
  const auto frozen =
      std::count_if(parameters.begin(), parameters.end(), [](const auto& p) { return !p.trainable; });
  if (frozen == 0) return not_for("nothing is frozen");
  const std::set<std::string> layers = frozen_layers(parameters);
  (void)context.step();
  const auto after = context.model()->parameters();
  std::vector<std::string> thawed;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].trainable && after[i].trainable) thawed.push_back(parameters[i].name);
  const std::vector<Array> before = context.weights();  // and buffers behind them
  for (size_t i = 0; i < 3; ++i) context.train(context.batch(i), context.subject().lr);
  std::vector<std::string> moved, statistics;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].trainable && !optim::value_of(parameters[i]).identical(before[i]))
      moved.push_back(parameters[i].name);
  for (size_t i = 0; i < buffers.size(); ++i)
    if (layers.contains(layer_of(buffers[i].name)) &&
        !optim::value_of(buffers[i]).identical(before[parameters.size() + i]))
      statistics.push_back(buffers[i].name);
  const Finding finding = [&] {
    if (!moved.empty() || !thawed.empty())
      return failed(
          fmt::format("{} {} frozen and moved in 3 steps", fmt::join(moved.empty() ? thawed : moved, ", "),
                      (moved.empty() ? thawed : moved).size() == 1 ? "was" : "were"),
          "freeze parameters before the step is compiled, and let nothing thaw them (set_trainable)");
    if (!statistics.empty())
      return warned(fmt::format("{} moved in 3 steps, in layers whose parameters are all frozen",
                                fmt::join(statistics, ", ")),
                    "a norm that is frozen goes on following the statistics of its batches: keep it in "
                    "evaluation mode, or thaw it, if the features are to stay as they were");
    if (const auto drawn = frozen_as_drawn(context); !drawn.empty())
      return warned(fmt::format("{} {} frozen as drawn at random", fmt::join(drawn, ", "),
                                drawn.size() == 1 ? "is" : "are"),
                    "what never learnt anything is seldom worth keeping: begin with weights that did "
                    "(train.init_from), or let it train");
    return passed(fmt::format("{} of {} parameters are frozen, and stayed", frozen, parameters.size()));
  }();
  return with_numbers(finding,
                      {{"frozen", frozen}, {"moved", moved.size()}, {"statistics_moved", statistics.size()}});
}

}  // namespace

MILLRACE_CHECK_KIND(frozen){
    .name = "frozen",
    .doc = "frozen parameters that move, and running statistics of frozen layers",
    .matters = "features that were to be kept drift away, and the pretrained model is no longer what it was",
    .place = 285,
    .run = run_frozen,
};

}  // namespace millrace::check
