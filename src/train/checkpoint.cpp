#include "train/checkpoint.h"

#include <algorithm>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "base/number_from.h"

namespace millrace::train {
namespace {

namespace fs = std::filesystem;

constexpr int64_t schema = 2;
constexpr const char* format_name = "millrace-checkpoint";
constexpr const char* best_name = "best.safetensors";

template <typename T>
T number_of(const std::string& text, const fs::path& path) {
  const std::optional<T> value = number_from<T>(text);
  if (!value) fail<InputError>("{}: '{}' in its metadata is no number", path.string(), text);
  return *value;
}

}  // namespace

const Array* Checkpoint::tensor(const std::string& name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& item) { return item.first == name; });
  return found == tensors.end() ? nullptr : &found->second;
}

int64_t Checkpoint::counter(const std::string& name) const {
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second;
}

void write_checkpoint(const fs::path& path, const Checkpoint& checkpoint) {
  track::Metadata metadata{{"format", format_name},
                           {"schema", fmt::format("{}", schema)},
                           {"step", fmt::format("{}", checkpoint.step)}};
  for (const auto& [name, value] : checkpoint.counters)
    metadata["counter." + name] = fmt::format("{}", value);
  for (const auto& [name, value] : checkpoint.sums) metadata["sum." + name] = fmt::format("{}", value);
  for (const auto& [name, value] : checkpoint.choices) metadata["choice." + name] = value;
  if (!checkpoint.encoding.empty()) metadata["encoding"] = checkpoint.encoding;
  track::write_safetensors(path, checkpoint.tensors, metadata);
}

Checkpoint read_checkpoint(const fs::path& path) {
  const track::SafeTensors file(path);
  const auto& metadata = file.metadata();
  const auto text = [&](const std::string& key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  if (text("format") != format_name || !file.has_checksum())
    fail<InputError>("{}: not a checkpoint of Millrace", path.string());
  if (const auto version = number_of<int64_t>(text("schema"), path); version != schema)
    throw SchemaError(fmt::format(
        "{}: checkpoint schema {} is {} than this program's schema {}: use the Millrace that wrote it",
        path.string(), version, version > schema ? "newer" : "older", schema));
  Checkpoint checkpoint;
  checkpoint.step = number_of<int64_t>(text("step"), path);
  checkpoint.encoding = text("encoding");
  for (const auto& [key, value] : metadata) {
    const size_t dot = key.find('.');
    if (dot == std::string::npos) continue;
    const std::string kind = key.substr(0, dot), name = key.substr(dot + 1);
    if (kind == "counter") checkpoint.counters[name] = number_of<int64_t>(value, path);
    if (kind == "sum") checkpoint.sums[name] = number_of<double>(value, path);
    if (kind == "choice") checkpoint.choices[name] = value;
  }
  for (const std::string& name : file.names()) checkpoint.tensors.emplace_back(name, file.tensor(name));
  return checkpoint;
}

std::string checkpoint_name(int64_t step) { return fmt::format("step-{:08}.safetensors", step); }

std::vector<fs::path> list_checkpoints(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".safetensors")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint, int64_t keep, int64_t keep_too) {
  try {
    write_checkpoint(folder / checkpoint_name(checkpoint.step), checkpoint);
  } catch (const IoError& error) {
    const auto kept = list_checkpoints(folder);
    fail<IoError>(
        "the checkpoint of step {} could not be saved: {}{}", checkpoint.step, error.what(),
        kept.empty() ? "" : fmt::format(" {} is intact: --resume goes on from there.", kept.back().string()));
  }
  const auto files = list_checkpoints(folder);
  remove_unfinished(
      folder, [](const std::string& name) { return name.find(".safetensors.tmp-") != std::string::npos; });
  std::error_code ignored;
  for (size_t i = 0; i + static_cast<size_t>(keep) < files.size(); ++i)
    if (keep_too < 0 || files[i].filename() != checkpoint_name(keep_too)) fs::remove(files[i], ignored);
}

void keep_as_best(const fs::path& folder, const Checkpoint& checkpoint) {
  const fs::path best = folder / best_name;
  fs::path link = best;
  link += fmt::format(".tmp-{}", ::getpid());
  std::error_code error;
  fs::remove(link, error);
  // Another name of the same bytes, where the file system can do that.
  fs::create_hard_link(folder / checkpoint_name(checkpoint.step), link, error);
  if (!error) fs::rename(link, best, error);
  if (error) write_checkpoint(best, checkpoint);
}

Loaded load_checkpoint(const fs::path& run, const std::string& which) {
  const fs::path folder = run / "checkpoints";
  if (which.empty() || which == "last") {
    auto newest = load_newest_checkpoint(folder);
    if (!newest) fail<InputError>("{} has no checkpoint yet: train it first", run.string());
    return std::move(*newest);
  }
  const int64_t step = number_from(which).value_or(-1);
  const bool number = step >= 0;
  if (which != "best" && !number)
    fail<InputError>("there is no checkpoint '{}': name best, last or the number of a step", which);
  const fs::path path = folder / (number ? checkpoint_name(step) : best_name);
  if (!fs::exists(path)) {
    std::string kept;
    for (const fs::path& each : list_checkpoints(folder))
      kept += (kept.empty() ? "" : ", ") + each.stem().string();
    fail<InputError>("{} has no checkpoint '{}'{}: there are {}", run.string(), which,
                     number ? "" : ", which train.keep_best = \"METRIC\" keeps",
                     kept.empty() ? "none" : kept);
  }
  return {read_checkpoint(path), path, {}};
}

std::optional<Loaded> load_newest_checkpoint(const fs::path& folder) {
  const auto files = list_checkpoints(folder);
  std::vector<std::string> warnings;
  for (auto path = files.rbegin(); path != files.rend(); ++path) {
    try {
      return Loaded{read_checkpoint(*path), *path, std::move(warnings)};
    } catch (const SchemaError&) {
      throw;
    } catch (const Error& error) {
      warnings.push_back(fmt::format("damaged checkpoint passed over: {}", error.what()));
    }
  }
  if (!warnings.empty())
    fail<IoError>("{}: no checkpoint is sound ({}): put one back from a copy, or begin a new run",
                  folder.string(), fmt::join(warnings, "; "));
  return std::nullopt;
}

}  // namespace millrace::train
