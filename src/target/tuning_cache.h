// What was found fastest on this machine, kept on disk: measured once, used ever after.
#pragma once

#include <filesystem>
#include <ios>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace millrace {

/// A file with one line a choice: cpu, problem, choice, between tabs. The first line of a problem holds, and
/// a process adds one only after it has read those of others, so that programs that measure at the same time
/// agree. Lines are appended whole; a damaged one is passed over. Thread-safe.
class TuningCache {
 public:
  /// "": no file.
  TuningCache(std::filesystem::path path, std::string cpu);
  std::optional<std::string> find(const std::string& problem);
  /// The choice that holds.
  std::string keep(const std::string& problem, const std::string& choice);

 private:
  void read_on();

  const std::filesystem::path path_;
  const std::string cpu_;
  std::mutex mutex_;
  std::streamoff read_ = 0;  // so much of the file
  std::map<std::string, std::string> known_;
};

/// The provider that won for a problem on this type of CPU; nullopt when it was never measured or there is no
/// cache. The cache is $MILLRACE_CACHE/choices, else millrace/choices under $XDG_CACHE_HOME or ~/.cache.
/// Thread-safe.
std::optional<std::string> tuned_choice(const std::string& problem);

/// Keeps a choice for this process and, where the disk allows, for others. The choice that holds: where
/// another process was the first to keep one for the problem, that.
std::string keep_choice(const std::string& problem, const std::string& choice);

}  // namespace millrace
