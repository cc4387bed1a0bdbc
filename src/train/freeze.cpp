#include "train/freeze.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/suggest.h"
#include "task/freeze_entry.h"

namespace millrace::train {
namespace {

bool applies(const Freeze& freeze, const std::string& name) {
  return name == freeze.name || name.starts_with(freeze.name + ".");
}

}  // namespace

std::vector<Freeze> parse_freezes(const std::vector<std::string>& entries, nn::Module& model,
                                  int64_t steps_per_epoch) {
  std::vector<Freeze> freezes;
  for (const std::string& entry : entries) {
    const auto [name, epochs] = task::parse_freeze(entry);
    Freeze freeze{name, std::llround(epochs * static_cast<double>(steps_per_epoch))};
    std::vector<std::string> names;
    for (const nn::Named& parameter : model.parameters()) names.push_back(parameter.name);
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& one) { return applies(freeze, one); }))
      fail<InputError>("train.freeze: the model has no parameter or layer '{}'{}", freeze.name,
                       did_you_mean(freeze.name, names));
    freezes.push_back(std::move(freeze));
  }
  return freezes;
}

bool freeze_due(nn::Module& model, const std::vector<Freeze>& freezes, int64_t step) {
  if (freezes.empty()) return false;  // asked before each step
  bool changed = false;
  const auto due = [&](const std::string& name) {
    return std::any_of(freezes.begin(), freezes.end(),
                       [&](const Freeze& freeze) { return step >= freeze.step && applies(freeze, name); });
  };
  for (const nn::Named& parameter : model.parameters())
    changed = changed || (parameter.trainable && due(parameter.name));
  if (changed) model.set_trainable(due, false);
  return changed;
}

}  // namespace millrace::train
