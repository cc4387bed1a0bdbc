// Further logs of a training by name (train.log), beside metrics.jsonl and TensorBoard's events, which each
// run has. Each is a file in src/track/logs/ with MILLRACE_LOG(name){…}.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/settings.h>

#include "base/registry.h"
#include "track/record.h"

namespace millrace::track {

/// What a log is told of the run that it is for.
struct LoggedRun {
  std::filesystem::path folder;
  std::filesystem::path base;                               // relative paths begin there
  std::string recipe;                                       // as TOML
  std::vector<std::pair<std::string, std::string>> params;  // its keys, with their values as TOML
  /// Records behind that step are to be forgotten: the run goes on from there. -1: it begins.
  int64_t resume_step = -1;
  /// For what the user must know, and no error: a server that does not answer.
  std::function<void(const std::string&)> message = [](const std::string&) {};
};

struct LogKind {
  std::string name, doc;
  std::vector<Setting> settings;  // as words (base/word_settings.h)
  /// InputError when it is nothing to log to; IoError when it cannot be written to.
  std::unique_ptr<Sink> (*open)(const Settings& settings, const LoggedRun& run) = nullptr;
  /// InputError, worded to follow the key, where these settings can be none. Nothing is opened.
  void (*check)(const Settings& settings) = nullptr;
};

#define MILLRACE_LOG(NAME)         \
  extern const LogKind log_##NAME; \
  const LogKind log_##NAME

Registry<LogKind>& log_kinds();
/// "sqlite FILE", of all.
std::vector<std::string> log_usages();
/// Opens "sqlite runs/all.sqlite".
std::unique_ptr<Sink> open_log(const std::string& text, const LoggedRun& run);
/// InputError, worded to follow the key, for a text that names no log.
void check_log(const std::string& text);

/// Lets records of each kind of steps through ten times a second at most, longer ones at 200 values a second,
/// and all of epochs: for logs that are slower than a training can be. metrics.jsonl has every step.
class Thinned {
 public:
  bool wanted(const Record& record) {
    if (record.names->summary) return true;
    const auto [last, first] = last_.try_emplace(record.names, record.time);
    if (!first && record.time - last->second < std::max(0.1, static_cast<double>(record.values.size()) / 200))
      return false;
    last->second = record.time;
    return true;
  }

 private:
  std::map<std::shared_ptr<const Names>, double> last_;
};

}  // namespace millrace::track
