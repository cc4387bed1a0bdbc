#include "train/run_folder.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/suggest.h"

namespace millrace::train {

namespace fs = std::filesystem;

fs::path run_path(const std::string& name, int number) {
  return fs::path("runs") / fmt::format("{}-{}", name, number);
}

int newest_run(const std::string& name) {
  int newest = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("runs", ignored)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(name + "-")) continue;
    int number = 0;
    const char *begin = file.data() + name.size() + 1, *end = file.data() + file.size();
    const auto [rest, error] = std::from_chars(begin, end, number);
    if (error == std::errc() && rest == end) newest = std::max(newest, number);
  }
  return newest;
}

RunFolder RunFolder::create(const fs::path& out, const std::string& name, const Recipe& recipe) {
  fs::path path = out;
  if (path.empty()) path = run_path(name, newest_run(name) + 1);
  if (fs::exists(path / "recipe.toml"))
    fail<InputError>("{} holds a run already: --resume continues it, another --out begins a new one",
                     path.string());
  RunFolder run(path);
  write_file(run.recipe(), recipe_toml(recipe));
  return run;
}

RunFolder RunFolder::open(const fs::path& path) {
  if (fs::exists(path / "recipe.toml")) return RunFolder(path);
  if (fs::exists(path)) fail<InputError>("{} is no run folder: it has no recipe.toml", path.string());
  std::vector<std::string> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path.has_parent_path() ? path.parent_path() : ".", error))
    if (fs::exists(entry.path() / "recipe.toml")) runs.push_back(entry.path().lexically_normal().string());
  fail<InputError>("there is no run folder {}{}", path.string(),
                   runs.empty() ? "" : fmt::format("; did you mean {}?", nearest(path.string(), runs)));
}

}  // namespace millrace::train
