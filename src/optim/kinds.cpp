#include "optim/kinds.h"

#include <algorithm>
#include <set>

#include "base/format.h"

namespace millrace::optim {

#include "generated/optimizers.inc"

namespace {

/// "blocks.0.n1.bias" for every "blocks.0.n1.running_mean".
std::set<std::string> norm_biases(nn::Module& model) {
  std::set<std::string> names;
  const std::string suffix = "running_mean";
  for (const nn::Named& buffer : model.buffers())
    if (buffer.name.ends_with(suffix))
      names.insert(buffer.name.substr(0, buffer.name.size() - suffix.size()) + "bias");
  return names;
}

/// Parameters that are treated differently, by the common settings.
std::vector<Group> common_groups(const Settings& settings, nn::Module& model) {
  const double scale = settings.number("norm_bias_lr");
  const bool decay_all = settings.flag("decay_all");
  std::vector<Group> groups;
  if (scale != 1)
    groups.push_back(
        {[names = norm_biases(model)](const std::string& name, const Type&) { return names.contains(name); },
         scale, decay_all ? settings.number("weight_decay") / scale : 0.0});
  if (!decay_all)
    groups.push_back({[](const std::string&, const Type& type) { return type.shape.rank() <= 1; }, 1, 0.0});
  return groups;
}

}  // namespace

Registry<OptimizerKind>& optimizer_kinds() {
  static Registry<OptimizerKind> kinds("optimizer", {MILLRACE_FOUND_OPTIMIZERS});
  return kinds;
}

const OptimizerKind& register_optimizer(const OptimizerKind& kind) {
  return optimizer_kinds().add(kind, {{"make", kind.make}});
}

std::vector<Setting> common_optimizer_settings() {
  return {
      {"lr", "learning rate, which the schedule multiplies", 0.1, 0},
      {"weight_decay", "pull of the weights towards zero (times the learning rate)", 0.0, 0, 1e3},
      {"norm_bias_lr",
       "the learning rate of the biases of batch norms is so many times larger (their decay stays the same)",
       1.0, 1e-6, 1e6},
      {"decay_all", "false: biases and norms' scales are not decayed", true}};
}

std::vector<Setting> optimizer_settings(const OptimizerKind& kind) {
  std::vector<Setting> settings = common_optimizer_settings();
  if (kind.whole)
    std::erase_if(settings,
                  [](const Setting& each) { return each.name == "lr" || each.name == "norm_bias_lr"; });
  for (const Setting& own : kind.settings) {
    const auto common = std::find_if(settings.begin(), settings.end(),
                                     [&](const Setting& each) { return each.name == own.name; });
    if (common == settings.end())
      settings.push_back(own);
    else
      *common = own;  // with a default of the kind's own
  }
  return settings;
}

double learning_rate(const Settings& settings) { return settings.find("lr") ? settings.number("lr") : 0; }

std::shared_ptr<const Optimizer> make_optimizer(const OptimizerKind& kind, const Settings& settings,
                                                double clip_norm, double clip_value, nn::Module& model,
                                                const Rates& rates) {
  if (kind.whole)
    fail<InputError>(
        "{} goes by the loss of all samples, which millrace train measures; here one of steps is wanted, as "
        "adamw",
        kind.name);
  return kind.make(
      settings, {.weight_decay = settings.number("weight_decay"),
                 .clip_value = clip_value,
                 .clip_norm = clip_norm,
                 .groups = with_factors(common_groups(settings, model), rate_factors(rates, model), model)});
}

}  // namespace millrace::optim
