#include "track/log_kind.h"

#include "base/word_settings.h"
#include "base/words.h"

namespace millrace::track {

#include "generated/logs.inc"

Registry<LogKind>& log_kinds() {
  static Registry<LogKind> kinds("log", {MILLRACE_FOUND_LOGS});
  return kinds;
}

namespace {

/// The kind that a text begins with, and what it is told behind its name.
std::pair<const LogKind*, Settings> parse_log(const std::string& text) {
  const std::vector<std::string> words = split_words(text);
  const LogKind& kind = log_kinds().at(words.empty() ? "" : words[0]);
  return {&kind, parse_words("log", text, kind.settings)};
}

}  // namespace

std::vector<std::string> log_usages() {
  std::vector<std::string> usages;
  for (const LogKind* kind : log_kinds().all()) usages.push_back(usage_of(kind->name, kind->settings));
  return usages;
}

std::unique_ptr<Sink> open_log(const std::string& text, const LoggedRun& run) {
  const auto [kind, settings] = parse_log(text);
  return kind->open(settings, run);
}

void check_log(const std::string& text) {
  const auto [kind, settings] = parse_log(text);
  if (kind->check) kind->check(settings);
}

}  // namespace millrace::track
