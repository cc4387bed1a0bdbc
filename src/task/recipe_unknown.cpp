#include "task/recipe_unknown.h"

#include <algorithm>

#include "base/contains.h"
#include "base/format.h"
#include "base/suggest.h"
#include "task/recipe.h"
#include "task/recipe_sections.h"

namespace millrace::task {
namespace {

const std::vector<std::string>& top_sections() {
  static const std::vector<std::string> names = {"data",  "input", "inputs", "output",  "outputs",
                                                 "model", "train", "eval",   "baseline"};
  return names;
}

constexpr const char* recipe_has =
    "a recipe has [data], [input], [output], [model], [train], [eval] and [baseline]";

/// The sections that choose a kind, by name.
const std::vector<std::pair<std::string, SectionType>>& kind_sections() {
  static const std::vector<std::pair<std::string, SectionType>> sections = {
      {"input", SectionType::input},
      {"output", SectionType::output},
      {"model", SectionType::model},
      {"train.optimizer", SectionType::optimizer},
      {"train.schedule", SectionType::schedule},
      {"output.loss", SectionType::loss}};
  return sections;
}

/// Would this stand in that section?
bool belongs(const std::string& section, const std::string& key, const Raw& raw) {
  if (find_key(section + "." + key)) return true;
  for (const auto& [name, type] : kind_sections()) {
    if (name != section) continue;
    if (key != "kind") return contains(section_keys(type), key);
    const auto* const kind = std::get_if<std::string>(&raw.value);
    return kind && contains(section_kinds(type), *kind);
  }
  return false;
}

/// The only section that has all keys of a table; "" where none has, or several.
std::string section_by_keys(const Items& items, const std::string& table) {
  std::vector<std::string> sections = {"data", "train", "eval", "baseline"};
  for (const auto& [name, type] : kind_sections()) sections.push_back(name);
  const std::string inside = table + ".";
  std::erase_if(sections, [&](const std::string& section) {
    bool some = false;
    for (auto at = items.values.lower_bound(inside);
         at != items.values.end() && at->first.starts_with(inside); ++at) {
      some = true;
      if (!belongs(section, at->first.substr(inside.size()), at->second)) return true;
    }
    return !some;
  });
  return sections.size() == 1 ? sections[0] : "";
}

/// Of what is written in it, where the table has none of its own (that of a dotted key).
std::string place_of(const Items& items, const std::string& table) {
  const auto first = items.values.lower_bound(table + ".");
  const std::string& own = items.tables.at(table).where;
  const bool inside = first != items.values.end() && first->first.starts_with(table + ".");
  return own.ends_with(":0:0") && inside ? first->second.where : own;
}

/// What is meant by a section in another: "[input.photo]", "[train.optimiser]".
void refuse_inner(const Items& items, const std::string& name, size_t dot) {
  const std::string section = name.substr(0, dot), inner = name.substr(dot + 1);
  const std::string where = place_of(items, name);
  for (const char* one : {"input", "output"})
    if (section == one &&
        !(section == "output" && (inner.starts_with("loss") || named_numbers(SectionType::output, inner))))
      fail<InputError>(
          "{}: there is no section [{}]: one {} is [{}], of several each is [{}s.NAME], as [{}s.{}]", where,
          name, one, one, one, one, inner);
  if (section == "train" || section == "data" || section == "eval" || section == "baseline") {
    std::vector<std::string> known;
    if (section == "train") known = {"train.optimizer", "train.schedule"};
    if (section == "data") known = {"data.train", "data.weights"};
    if (contains(known, name)) return;
    if (find_key(name)) return;  // said of its value
    const std::string best = near(name, known);
    fail<InputError>(
        "{}: there is no section [{}]{}", where, name,
        best.empty() ? fmt::format(": [{}] has keys", section) : fmt::format("; did you mean [{}]?", best));
  }
}

}  // namespace

void refuse_unknown_sections(const Items& items) {
  for (const auto& [name, table] : items.tables) {
    const size_t dot = name.find('.');
    const std::string top = name.substr(0, dot);
    if (contains(top_sections(), top)) {
      if (dot != std::string::npos) refuse_inner(items, name, dot);
      continue;
    }
    if (const std::string keys = section_by_keys(items, top); !keys.empty())
      fail<InputError>("{}: there is no section [{}]; did you mean [{}]? It has these keys ({})",
                       place_of(items, top), top, keys, recipe_has);
    const std::string best = near(top, top_sections());
    fail<InputError>("{}: there is no section [{}]{} ({})", place_of(items, top), top,
                     best.empty() ? "" : fmt::format("; did you mean [{}]?", best), recipe_has);
  }
}

void unknown_key(const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  if (const auto section = section_key(name)) {
    for (const std::string& key : section_keys(section->type)) names.push_back(section->section + "." + key);
    names.push_back(section->section + ".kind");
    if (section->type == SectionType::model) names.emplace_back("model.layers");
    fail<InputError>("{}: there is no key '{}'{}", where, name, did_you_mean_or_list(name, names));
  }
  for (const RecipeKey& key : recipe_keys()) names.push_back(key.name);
  for (const auto& [section, type] : kind_sections()) {
    if (type == SectionType::loss) continue;
    for (const std::string& key : section_keys(type)) names.push_back(section + "." + key);
  }
  const std::string leaf = name.substr(name.rfind('.') + 1);
  const auto same_leaf =
      std::find_if(names.begin(), names.end(), [&](const auto& key) { return key.ends_with("." + leaf); });
  if (same_leaf != names.end())
    fail<InputError>("{}: there is no key '{}'; did you mean '{}'?", where, name, *same_leaf);
  const size_t dot = name.find('.');
  if (dot == std::string::npos)
    fail<InputError>("{}: there is no key '{}'{}", where, name,
                     did_you_mean(name, names, fmt::format(": {}", recipe_has)));
  std::erase_if(names, [&](const auto& key) { return !key.starts_with(name.substr(0, dot + 1)); });
  fail<InputError>("{}: there is no key '{}'{}", where, name, did_you_mean_or_list(name, names));
}

}  // namespace millrace::task
