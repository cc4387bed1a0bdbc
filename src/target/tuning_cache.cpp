#include "target/tuning_cache.h"

#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <unistd.h>

#include "base/cache_folder.h"
#include "base/cpu.h"

namespace millrace {
namespace fs = std::filesystem;

TuningCache::TuningCache(fs::path path, std::string cpu) : path_(std::move(path)), cpu_(std::move(cpu)) {
  read_on();
}

std::optional<std::string> TuningCache::find(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  const auto at = known_.find(problem);
  return at == known_.end() ? std::nullopt : std::optional(at->second);
}

std::string TuningCache::keep(const std::string& problem, const std::string& choice) {
  const std::lock_guard lock(mutex_);
  if (const auto at = known_.find(problem); at != known_.end()) return at->second;
  std::error_code ignored;
  if (!path_.empty()) fs::create_directories(path_.parent_path(), ignored);
  const int file =
      path_.empty() ? -1 : ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return known_[problem] = choice;  // a cache that cannot be written only costs time
  // Where there are no locks, others' choices hold from the next start on.
  ::flock(file, LOCK_EX);
  read_on();
  const auto [at, added] = known_.emplace(problem, choice);
  if (added) {
    const std::string line = cpu_ + "\t" + problem + "\t" + choice + "\n";
    [[maybe_unused]] const ssize_t written = ::write(file, line.data(), line.size());
  }
  ::close(file);
  return at->second;
}

/// The lines that came since the last look.
void TuningCache::read_on() {
  std::ifstream file(path_);
  file.seekg(read_);
  for (std::string line; std::getline(file, line) && !file.eof(); read_ = file.tellg()) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (second == std::string::npos || line.substr(0, first) != cpu_) continue;
    known_.emplace(line.substr(first + 1, second - first - 1), line.substr(second + 1));
  }
}

namespace {

TuningCache& choices() {
  static TuningCache all(
      [] {
        const auto folder = cache_folder("choices");
        return folder ? *folder / "choices-1.tsv" : fs::path();
      }(),
      cpu_name());
  return all;
}

}  // namespace

std::optional<std::string> tuned_choice(const std::string& problem) { return choices().find(problem); }
std::string keep_choice(const std::string& problem, const std::string& choice) {
  return choices().keep(problem, choice);
}

}  // namespace millrace
