#include "task/recipe_sections.h"

#include <algorithm>

#include "base/contains.h"
#include "base/format.h"
#include "base/suggest.h"
#include "nn/models/architecture.h"
#include "nn/models/combine.h"
#include "optim/kinds.h"
#include "task/input.h"
#include "task/output.h"
#include "task/recipe_items.h"

namespace millrace::task {
namespace {

constexpr const char* combine_kind = "combine";  // of several inputs: no architecture, as it is made of some

/// Later ones of a name are instead of earlier ones: what a kind says counts more than what all have.
std::vector<Setting> with_own(std::vector<Setting> common, const std::vector<Setting>& own) {
  for (const Setting& setting : own) {
    const auto same = std::find_if(common.begin(), common.end(),
                                   [&](const auto& each) { return each.name == setting.name; });
    if (same == common.end())
      common.push_back(setting);
    else
      *same = setting;
  }
  return common;
}

std::vector<Setting> model_settings(SectionType type, const std::string& kind) {
  std::vector<Setting> settings;
  if (kind == combine_kind && type == SectionType::model)
    settings = nn::combine_settings();
  else if (!kind.empty())
    settings = nn::architectures().at(kind).settings;
  // Layers of the whole model are a key of every recipe.
  if (type == SectionType::branch && kind.empty())
    settings.push_back({"layers", "the network as a list of layers", std::vector<std::string>()});
  return settings;
}

/// Is an item of an output its loss's?
bool of_loss(std::string_view key) { return key == "loss" || key.starts_with("loss."); }

std::string at_place(const std::string& where) { return where.empty() ? "" : where + ": "; }

}  // namespace

std::vector<std::string> texts_of(const Section& section, const std::string& key) {
  SettingValue value;
  if (const auto item = section.items.find(key); item != section.items.end())
    value = as_setting(item->second.value, item->second.spelt, std::vector<std::string>());
  else if (section.settings.find(key))
    value = section.settings.value(key);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return *list;
  if (const auto* text = std::get_if<std::string>(&value); text && !text->empty()) return {*text};
  return {};
}

std::vector<std::string> section_kinds(SectionType type) {
  std::vector<std::string> kinds;
  switch (type) {
    case SectionType::input:
      return input_kinds().names();
    case SectionType::output:
      return output_kinds().names();
    case SectionType::optimizer:
      return optim::optimizer_kinds().names();
    case SectionType::schedule:
      return optim::schedule_kinds().names();
    case SectionType::loss:
      return loss_kinds().names();
    case SectionType::branch:
      return nn::architectures().names();
    case SectionType::model:
      break;
  }
  kinds = nn::architectures().names();
  kinds.emplace_back(combine_kind);
  return kinds;
}

std::vector<Setting> section_settings(SectionType type, const std::string& kind) {
  switch (type) {
    case SectionType::input:
      return input_kinds().at(kind).settings;
    case SectionType::output:
      return with_own(common_output_settings(), output_kinds().at(kind).settings);
    case SectionType::optimizer:
      return optim::optimizer_settings(optim::optimizer_kinds().at(kind));
    case SectionType::schedule:
      return optim::schedule_kinds().at(kind).settings;
    case SectionType::loss:
      return loss_kinds().at(kind).settings;
    case SectionType::model:
    case SectionType::branch:
      break;
  }
  return model_settings(type, kind);
}

std::vector<std::string> section_keys(SectionType type) {
  std::vector<std::string> keys;
  const auto add = [&](const std::vector<Setting>& settings) {
    for (const Setting& setting : settings)
      if (!contains(keys, setting.name)) keys.push_back(setting.name);
  };
  for (const std::string& kind : section_kinds(type)) add(section_settings(type, kind));
  if (type == SectionType::branch) add(section_settings(type, ""));
  if (type == SectionType::output) {
    if (!contains(keys, "loss")) keys.emplace_back("loss");
    for (const std::string& key : section_keys(SectionType::loss)) keys.push_back("loss." + key);
  }
  return keys;
}

std::vector<std::string> kinds_with(SectionType type, const std::string& key) {
  std::vector<std::string> kinds;
  for (const std::string& kind : section_kinds(type)) {
    const std::vector<Setting> settings = section_settings(type, kind);
    if (std::any_of(settings.begin(), settings.end(), [&](const auto& each) { return each.name == key; }))
      kinds.push_back(kind);
  }
  return kinds;
}

void settle_section(SectionType type, Section& section, const std::string& prefix, const std::string& kind,
                    const std::string& where) {
  const std::vector<std::string> kinds = section_kinds(type);
  if (!kind.empty() && !contains(kinds, kind))
    fail<InputError>("{}{}.kind cannot be '{}'{} ({})", at_place(where), prefix, kind,
                     did_you_mean(kind, kinds), fmt::join(kinds, ", "));
  std::vector<Setting> settings = section_settings(type, kind);
  const auto declares = [&](const std::string& key) {
    return std::any_of(settings.begin(), settings.end(), [&](const auto& each) { return each.name == key; });
  };
  for (const auto& [key, item] : section.items) {
    if (declares(key) || (type == SectionType::output && of_loss(key))) continue;
    const std::vector<std::string> others = kinds_with(type, key);
    if (others.empty()) continue;  // settle() names the nearest
    fail<InputError>("{}{}.{} means nothing to {} (only to {})", at_place(item.where), prefix, key,
                     kind.empty() ? prefix + ".layers" : fmt::format("{}.kind = '{}'", prefix, kind),
                     fmt::join(others, ", "));
  }
  section.settle(prefix, kind, std::move(settings));
}

void Section::settle(const std::string& prefix, const std::string& kind_name, std::vector<Setting> declared) {
  kind = kind_name;
  settings = Settings(std::move(declared));
  for (const auto& [key, item] : items) {
    const Setting* const setting = settings.find(key);
    if (!setting) {
      if (prefix.starts_with("output") && of_loss(key)) continue;
      std::vector<std::string> names;
      for (const Setting& each : settings.declared()) names.push_back(prefix + "." + each.name);
      if (names.empty())
        fail<InputError>("{}there is no key '{}.{}': {} has none", at_place(item.where), prefix, key,
                         kind.empty() ? prefix : fmt::format("{}.kind = '{}'", prefix, kind));
      fail<InputError>("{}there is no key '{}.{}'{}", at_place(item.where), prefix, key,
                       did_you_mean_or_list(prefix + "." + key, names));
    }
    try {
      settings.set(key, as_setting(item.value, item.spelt, setting->usual));
    } catch (const InputError& error) {
      fail<InputError>("{}{}.{} {}", at_place(item.where), prefix, key, error.what());
    }
  }
}

void Section::set(const std::string& key, SettingValue value) {
  if (settings.find(key)) settings.set(key, value);
  items.insert_or_assign(key, Item{std::move(value), ""});
}

std::optional<SectionLoss> loss_of(const Section& output) {
  const std::string prefix = output_key(output);
  SectionLoss loss;
  std::string where;
  const auto chosen = output.items.find("loss");
  if (chosen != output.items.end()) {
    where = at_place(chosen->second.where);
    const auto* name = std::get_if<std::string>(&chosen->second.value);
    if (!name)
      fail<InputError>(
          "{}{}.loss must be the name of a loss, such as \"mse\", or a table of it, {{ kind = …, KEY = … }}, "
          "not {}",
          where, prefix, type_text(chosen->second.value));
    loss.kind = *name;
  }
  if (loss.kind.empty() && !output.kind.empty()) loss.kind = output_kinds().at(output.kind).loss;
  if (loss.kind.empty()) return std::nullopt;
  Section section;
  for (const auto& [key, item] : output.items)
    if (key.starts_with("loss.") && key != "loss.kind") section.items.emplace(key.substr(5), item);
  settle_section(SectionType::loss, section, prefix + ".loss", loss.kind,
                 chosen == output.items.end() ? "" : chosen->second.where);
  loss.settings = std::move(section.settings);
  return loss;
}

ChosenLoss chosen_loss(const Section& output) {
  const SectionLoss loss = loss_of(output).value();
  std::vector<std::string> fitting;
  for (const LossKind* each : loss_kinds().all())
    if (contains(each->outputs, output.kind)) fitting.push_back(each->name);
  if (!contains(fitting, loss.kind)) {
    const auto written = output.items.find("loss");
    fail<InputError>("{}{}.loss = \"{}\" does not apply to an output of kind {}: choose one of {}",
                     written == output.items.end() ? "" : at_place(written->second.where), output_key(output),
                     loss.kind, output.kind, fmt::join(fitting, ", "));
  }
  return {&loss_kinds().at(loss.kind), loss.settings};
}

ChosenLoss chosen_loss(const Section& output, std::span<const double> weights, const std::string& key) {
  ChosenLoss loss = chosen_loss(output);
  if (!weights.empty() && !loss.kind->weighted)
    fail<InputError>("{}: the loss {} knows no weights of classes", key, loss.kind->name);
  for (const double weight : weights) loss.weights.push_back(static_cast<float>(weight));
  return loss;
}

Tensor ChosenLoss::operator()(const Tensor& logits, const Tensor& targets, bool mean) const {
  MILLRACE_CHECK(kind, "an output without a loss");
  if (weights.empty()) return kind->make(logits, targets, settings, mean);
  Array array(f32, {std::ssize(weights)});
  std::copy(weights.begin(), weights.end(), array.as<float>().begin());
  return kind->weighted(logits, targets, Tensor(array), settings, mean);
}

bool named_numbers(SectionType type, const std::string& key) {
  for (const std::string& kind : section_kinds(type))
    for (const Setting& setting : section_settings(type, kind))
      if (setting.name == key && setting.named_numbers) return true;
  return false;
}

std::optional<SectionKey> section_key(std::string_view name) {
  const auto part = [&](SectionType type, std::string_view section) -> std::optional<SectionKey> {
    if (name.size() <= section.size() + 1 || !name.starts_with(section) || name[section.size()] != '.')
      return std::nullopt;
    return SectionKey{type, std::string(section), std::string(name.substr(section.size() + 1))};
  };
  for (const auto& [type, section] :
       {std::pair(SectionType::input, "input"), std::pair(SectionType::output, "output"),
        std::pair(SectionType::optimizer, "train.optimizer"),
        std::pair(SectionType::schedule, "train.schedule")})
    if (auto found = part(type, section)) return found;
  for (const auto& [type, table] : {std::pair(SectionType::input, std::string_view("inputs.")),
                                    std::pair(SectionType::output, std::string_view("outputs.")),
                                    std::pair(SectionType::branch, std::string_view("model."))}) {
    if (!name.starts_with(table)) continue;
    const size_t dot = name.find('.', table.size());
    if (dot != std::string_view::npos) return part(type, name.substr(0, dot));
  }
  return part(SectionType::model, "model");
}

bool is_table_name(const std::string& name) {
  if (name == "inputs" || name == "outputs") return true;
  const auto inside = section_key(name + ".KEY");
  if (inside && (inside->key == "KEY" || (inside->type == SectionType::output && inside->key == "loss.KEY")))
    return true;
  const auto keys = recipe_keys();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const auto& key) { return key.name.starts_with(name + "."); });
}

std::string input_key(const Section& input) { return input.name.empty() ? "input" : "inputs." + input.name; }
std::string output_key(const Section& output) {
  return output.name.empty() ? "output" : "outputs." + output.name;
}

}  // namespace millrace::task
