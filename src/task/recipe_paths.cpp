// Paths of a recipe, wherever it is used.
#include "task/recipe_paths.h"

#include <filesystem>

#include "data/io/location.h"

namespace millrace::task {
namespace {

namespace fs = std::filesystem;

/// Of a pattern, "a/train-{000..007}.tar", the folder that it names files in.
fs::path fixed_part(const std::string& path) {
  const size_t pattern = path.find_first_of("{*?[");
  return pattern == std::string::npos ? fs::path(path) : fs::path(path.substr(0, pattern)).parent_path();
}

/// Where it does not exist below the base, the folders have moved together, and it is looked for from here.
void anchor(const fs::path& base, std::string& text) {
  if (set_name(text)) return;
  const std::string path = expand(text);
  if (path.empty() || fs::path(path).is_absolute() || data::is_elsewhere(path)) return;
  const std::string there = (base / path).lexically_normal().string();
  std::error_code ignored;
  if (fs::exists(fixed_part(there), ignored)) text = there;
}

/// Absolute, without links and a last '/'.
fs::path place(const fs::path& path) {
  std::error_code failed;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, failed), failed);
  return whole.has_filename() ? whole : whole.parent_path();
}

/// use(path) of each that the recipe has, in one order.
template <typename Use>
void each_path(Recipe& recipe, Use&& use) {
  for (const RecipeKey& key : recipe_keys()) {
    if (!key.path) continue;
    const RecipeSlot slot = key.slot(recipe);
    if (auto* const* text = std::get_if<std::string*>(&slot)) use(**text);
    if (auto* const* named = std::get_if<std::map<std::string, std::string>*>(&slot))
      for (auto& [name, text] : **named) use(text);
  }
  const auto of_section = [&](Section& section) {
    for (auto& [key, item] : section.items) {
      const Setting* const setting = section.settings.find(key);
      auto* const text = std::get_if<std::string>(&item.value);
      if (!setting || !setting->path || !text) continue;
      use(*text);
      section.settings.set(key, *text);
    }
  };
  for (Section& section : recipe.inputs) of_section(section);
  of_section(recipe.model);
  for (auto& [name, branch] : recipe.model.branches) of_section(branch);
}

}  // namespace

void anchor_paths(Recipe& recipe) {
  if (recipe.data.base.empty()) return;
  const fs::path base = expand(recipe.data.base);
  std::error_code ignored;
  if (fs::equivalent(base, ".", ignored)) return;  // as they were written
  each_path(recipe, [&](std::string& text) { anchor(base, text); });
}

bool same_but_for_paths(const Recipe& changed, const Recipe& other) {
  Recipe now = changed, before = other;
  std::vector<std::string> old;
  each_path(before, [&](std::string& text) { old.push_back(text); });
  const fs::path base = expand(other.data.base);
  size_t at = 0;
  // Each becomes the old one's text where it is the same place.
  each_path(now, [&](std::string& text) {
    if (at >= old.size()) return;
    const std::string& was = old[at++];
    if (text == was || text.empty() || was.empty() || set_name(text) || set_name(was)) return;
    const std::string here = expand(text), there = expand(was);
    if (data::is_elsewhere(here) || data::is_elsewhere(there)) return;
    if (place(here) == place(base / there)) text = was;
  });
  return at == old.size() && recipe_toml(now) == recipe_toml(before);
}

}  // namespace millrace::task
