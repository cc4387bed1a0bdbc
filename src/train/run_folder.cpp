#include "train/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/number_from.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "nn/models/architecture.h"

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
    if (const auto number = number_from<int>(file.substr(name.size() + 1)))
      newest = std::max(newest, *number);
  }
  return newest;
}

namespace {

/// use(section, kind, folder) of the model and of each branch that comes from a file.
template <typename Use>
void each_file_model(task::Recipe& recipe, Use&& use) {
  const auto of = [&](task::Section& section, const fs::path& folder) {
    const nn::Architecture* const kind = nn::architectures().find(section.kind);
    if (kind && !kind->ending.empty() && section.settings.find(kind->file)) use(section, *kind, folder);
  };
  of(recipe.model, "model");
  for (auto& [name, branch] : recipe.model.branches) of(branch, fs::path("model") / name);
}

void keep_files(const fs::path& run, task::Recipe recipe) {
  each_file_model(
      recipe, [&](const task::Section& section, const nn::Architecture& kind, const fs::path& folder) {
        const fs::path file = task::expand(section.settings.text(kind.file));
        std::vector<fs::path> names = {file.filename()};
        if (kind.beside)
          for (const std::string& name : kind.beside(file.string())) names.emplace_back(name);
        for (const fs::path& name : names) {
          const fs::path to = (run / folder / name).lexically_normal();
          // What lies outside of the file's folder is not read either.
          if (name.is_absolute() || *name.lexically_normal().begin() == "..") continue;
          std::error_code error;
          fs::create_directories(to.parent_path(), error);
          fs::copy_file(file.parent_path() / name, to, fs::copy_options::overwrite_existing, error);
          if (error)
            fail<IoError>("{}: cannot be copied to {}: {}", file.string(), to.string(), error.message());
        }
      });
}

}  // namespace

void anchor_run_paths(const fs::path& run, task::Recipe& recipe) {
  task::anchor_paths(recipe);
  each_file_model(recipe, [&](task::Section& section, const nn::Architecture& kind, const fs::path& folder) {
    const fs::path kept = run / folder / fs::path(task::expand(section.settings.text(kind.file))).filename();
    std::error_code ignored;
    if (fs::exists(kept, ignored)) section.set(kind.file, kept.string());
  });
}

RunFolder RunFolder::create(const fs::path& out, const std::string& name, const task::Recipe& recipe) {
  fs::path path = out;
  std::error_code error;
  // create_directory() tells when another process was faster.
  if (out.empty()) fs::create_directories("runs", error);
  for (int number = newest_run(name) + 1; out.empty() && !error; ++number) {
    path = run_path(name, number);
    if (fs::create_directory(path, error)) break;
  }
  if (!out.empty()) fs::create_directories(path, error);
  if (error) fail<IoError>("{}: cannot make the folder for a run: {}", path.string(), error.message());
  const auto require_new = [&] {
    if (fs::exists(path / "recipe.toml"))
      fail<InputError>("{} holds a run already: --resume continues it, another --out begins a new one",
                       path.string());
  };
  RunFolder run(path);
  require_new();
  run.lock();
  require_new();  // another process may have been faster
  task::Recipe kept = recipe;
  // A recipe is UTF-8. Without it, the run is to be gone on with from where it was begun.
  if (const std::string here = fs::current_path(error).string(); kept.data.base.empty() && is_utf8(here))
    kept.data.base = here;
  keep_files(path, kept);
  write_file(run.recipe(), task::recipe_toml(kept));
  return run;
}

void RunFolder::lock() {
  const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail<IoError>("{}: cannot open the folder: {}", path_.string(), std::strerror(errno));
  // A file system without locks is no reason to stop; the lock goes with the process, however it ends.
  const bool taken = ::flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  lock_ = std::shared_ptr<void>(nullptr, [folder](void*) { ::close(folder); });
  if (taken) fail<InputError>("{} is in use: another process trains there", path_.string());
}

bool RunFolder::in_use() const {
  const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  const bool taken = ::flock(folder, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(folder);
  return taken;
}

RunFolder RunFolder::open(const fs::path& path) {
  std::error_code error;
  const auto has_recipe =
      [&](const fs::path& folder) {  // what cannot be looked at (a link to itself) has none
        return fs::exists(folder / "recipe.toml", error);
      };
  if (has_recipe(path)) return RunFolder(path);
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.path().filename().string().starts_with("seed-") && has_recipe(entry.path()))
      fail<InputError>(
          "{0} holds runs of several seeds: name one, such as {1} (to go on with all of them: "
          "millrace train RECIPE --seeds N --resume --out {0})",
          path.string(), entry.path().string());
  if (fs::exists(path, error)) fail<InputError>("{} is no run folder: it has no recipe.toml", path.string());
  std::vector<std::string> runs;
  for (const auto& entry : fs::directory_iterator(path.has_parent_path() ? path.parent_path() : ".", error))
    if (has_recipe(entry.path())) runs.push_back(entry.path().lexically_normal().string());
  fail<InputError>("there is no run folder {}{}", path.string(),
                   runs.empty() ? "" : fmt::format("; did you mean {}?", nearest(path.string(), runs)));
}

task::Recipe recipe_of(const fs::path& path, std::span<const std::string> overrides) {
  const fs::path file = fs::is_directory(path) ? RunFolder::open(path).recipe() : path;
  task::Recipe recipe = task::load_recipe(file, overrides);
  task::check_recipe(recipe, file.string());
  if (fs::is_directory(path))
    anchor_run_paths(path, recipe);
  else
    task::anchor_paths(recipe);
  return recipe;
}

}  // namespace millrace::train
