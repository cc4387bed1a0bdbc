// Recipes as TOML.
#include "base/format.h"
#include "task/recipe.h"
#include "task/recipe_sections.h"
#include "task/toml_text.h"

namespace millrace::task {
namespace {

template <typename T>
std::string list_text(const std::vector<T>& list) {
  std::vector<std::string> parts;
  for (const T& item : list) parts.push_back(toml_text(item));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

template <typename T>
std::string table_text(const std::map<std::string, T>& table) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : table) parts.push_back(name + " = " + toml_text(value));
  return parts.empty() ? "{}" : fmt::format("{{ {} }}", fmt::join(parts, ", "));
}

std::string line_text(const std::string& key, const std::string& value) {
  return fmt::format("{} = {}\n", key, value);
}

/// { kind = "mse", … }, with all that the loss can be told; "" where the recipe says nothing of it.
std::string loss_text(const Section& output) {
  const auto loss = loss_of(output);
  std::vector<std::string> parts;
  if (loss) {
    parts.push_back("kind = " + toml_text(loss->kind));
    for (const Setting& setting : loss->settings.declared())
      parts.push_back(setting.name + " = " + toml_text(loss->settings.value(setting.name)));
  } else {
    for (const auto& [key, item] : output.items)
      if (key.starts_with("loss.")) parts.push_back(key.substr(5) + " = " + toml_text(item.value));
  }
  return parts.empty() ? "" : fmt::format("{{ {} }}", fmt::join(parts, ", "));
}

/// The lines of a section: its kind with all that it can be told, or where that is not known yet what was
/// written.
std::string section_text(SectionType type, const Section& section) {
  std::string text;
  if (!section.kind.empty()) text += line_text("kind", toml_text(section.kind));
  const auto of_loss = [&](const std::string& key) {
    return type == SectionType::output && (key == "loss" || key.starts_with("loss."));
  };
  if (section.settings.declared().empty()) {
    for (const auto& [key, item] : section.items)
      if (!of_loss(key)) text += line_text(key, toml_text(item.value));
  } else {
    for (const Setting& setting : section.settings.declared())
      if (!of_loss(setting.name))
        text += line_text(setting.name, toml_text(section.settings.value(setting.name)));
  }
  if (type == SectionType::output)
    if (const std::string loss = loss_text(section); !loss.empty()) text += line_text("loss", loss);
  return text;
}

/// The keys that every recipe may have, of one table.
std::string keys_text(Recipe& recipe, std::string_view table) {
  std::string text;
  for (const RecipeKey& key : recipe_keys()) {
    std::string_view name = key.name;
    if (!name.starts_with(table)) continue;
    // A table of the user's own is written in one line; data.train is a source or a table.
    const bool sources = !recipe.data.sources.empty();
    if ((name == "data.train" && sources) || (name == "data.train.NAME" && !sources)) continue;
    if (name.ends_with(".NAME")) name.remove_suffix(5);
    if (name == "model.layers" && recipe.model.layers.empty()) continue;
    const RecipeSlot slot = key.slot(recipe);
    const auto* const* whole = std::get_if<int64_t*>(&slot);
    const bool worded = key.word && whole && **whole == 0;
    text += line_text(std::string(name.substr(name.rfind('.') + 1)),
                      worded ? toml_text(std::string(key.word))
                             : std::visit([](auto* value) { return toml_text(*value); }, slot));
  }
  return text;
}

}  // namespace

std::string toml_text(bool value) { return value ? "true" : "false"; }
std::string toml_text(int64_t value) { return fmt::format("{}", value); }
std::string toml_text(double value) { return fmt::format("{}", value); }
std::string toml_text(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      text += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      text += c;
  }
  return text + "\"";
}
std::string toml_text(const std::vector<std::string>& list) { return list_text(list); }
std::string toml_text(const std::vector<double>& list) { return list_text(list); }
std::string toml_text(const std::map<std::string, std::string>& table) { return table_text(table); }
std::string toml_text(const std::map<std::string, double>& table) { return table_text(table); }
std::string toml_text(const SettingValue& value) {
  return std::visit([](const auto& each) { return toml_text(each); }, value);
}

std::string recipe_toml(const Recipe& recipe) {
  Recipe copy = recipe;
  std::string text = "[data]\n" + keys_text(copy, "data.");
  const auto add = [&](const std::string& name, const std::string& lines) {
    text += fmt::format("\n[{}]\n{}", name, lines);
  };
  for (const Section& input : recipe.inputs) add(input_key(input), section_text(SectionType::input, input));
  for (const Section& output : recipe.outputs)
    add(output_key(output), section_text(SectionType::output, output));
  add("model", keys_text(copy, "model.") + section_text(SectionType::model, recipe.model));
  for (const auto& [name, branch] : recipe.model.branches)
    add("model." + name, section_text(SectionType::branch, branch));
  add("train", keys_text(copy, "train."));
  add("train.optimizer", section_text(SectionType::optimizer, recipe.train.optimizer));
  add("train.schedule", section_text(SectionType::schedule, recipe.train.schedule));
  add("eval", keys_text(copy, "eval."));
  if (!recipe.baseline.heuristic.empty() || !recipe.baseline.human.empty())
    add("baseline", keys_text(copy, "baseline."));
  return text;
}

}  // namespace millrace::task
