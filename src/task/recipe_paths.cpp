// Paths of a recipe, wherever it is used.
#include <filesystem>

#include "data/io/location.h"
#include "task/recipe.h"

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
  const std::string path = expand(text);
  if (path.empty() || fs::path(path).is_absolute() || data::is_elsewhere(path)) return;
  const std::string there = (base / path).lexically_normal().string();
  std::error_code ignored;
  if (fs::exists(fixed_part(there), ignored)) text = there;
}

void anchor(const fs::path& base, Section& section) {
  for (auto& [key, item] : section.items) {
    const Setting* const setting = section.settings.find(key);
    auto* const text = std::get_if<std::string>(&item.value);
    if (!setting || !setting->path || !text) continue;
    anchor(base, *text);
    section.settings.set(key, *text);
  }
}

}  // namespace

void anchor_paths(Recipe& recipe) {
  if (recipe.data.base.empty()) return;
  const fs::path base = expand(recipe.data.base);
  std::error_code ignored;
  if (fs::equivalent(base, ".", ignored)) return;  // as they were written
  for (const RecipeKey& key : recipe_keys()) {
    if (!key.path) continue;
    const RecipeSlot slot = key.slot(recipe);
    if (auto* const* text = std::get_if<std::string*>(&slot)) anchor(base, **text);
    if (auto* const* named = std::get_if<std::map<std::string, std::string>*>(&slot))
      for (auto& [name, text] : **named) anchor(base, text);
  }
  for (Section& input : recipe.inputs) anchor(base, input);
}

}  // namespace millrace::task
