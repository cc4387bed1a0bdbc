#include "target/tuning_cache.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <unistd.h>

#include "base/cache_folder.h"
#include "base/cpu.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// One line a choice: cpu, problem, choice, between tabs. The first line of a problem holds, so that programs
/// that measured at the same time agree afterwards. Lines are appended whole; a damaged one is passed over.
class Choices {
 public:
  Choices() : cpu_(cpu_name()) {
    const auto folder = cache_folder("choices");
    if (!folder) return;
    path_ = *folder / "choices-1.tsv";
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      const size_t first = line.find('\t'), second = line.find('\t', first + 1);
      if (second == std::string::npos || line.substr(0, first) != cpu_) continue;
      known_.emplace(line.substr(first + 1, second - first - 1), line.substr(second + 1));
    }
  }

  std::optional<std::string> find(const std::string& problem) {
    const std::lock_guard lock(mutex_);
    const auto at = known_.find(problem);
    return at == known_.end() ? std::nullopt : std::optional(at->second);
  }

  void keep(const std::string& problem, const std::string& choice) {
    const std::lock_guard lock(mutex_);
    if (!known_.emplace(problem, choice).second || path_.empty()) return;
    std::error_code ignored;
    fs::create_directories(path_.parent_path(), ignored);
    const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return;  // a cache that cannot be written only costs time
    const std::string line = cpu_ + "\t" + problem + "\t" + choice + "\n";
    [[maybe_unused]] const ssize_t written = ::write(file, line.data(), line.size());
    ::close(file);
  }

 private:
  std::string cpu_;
  fs::path path_;
  std::mutex mutex_;
  std::map<std::string, std::string> known_;
};

Choices& choices() {
  static Choices all;
  return all;
}

}  // namespace

std::optional<std::string> tuned_choice(const std::string& problem) { return choices().find(problem); }
void keep_choice(const std::string& problem, const std::string& choice) { choices().keep(problem, choice); }

}  // namespace millrace
