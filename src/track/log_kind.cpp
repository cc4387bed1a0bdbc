#include "track/log_kind.h"

#include "base/words.h"

namespace millrace::track {

#include "generated/logs.inc"

Registry<LogKind>& log_kinds() {
  static Registry<LogKind> kinds("log", {MILLRACE_FOUND_LOGS});
  return kinds;
}

namespace {

/// The kind that a text begins with, and what stands behind it.
std::pair<const LogKind*, std::string> split_log(const std::string& text) {
  const std::string_view whole = trimmed(text);
  const size_t end = std::min(whole.find_first_of(" \t"), whole.size());
  return {&log_kinds().at(whole.substr(0, end)), std::string(trimmed(whole.substr(end)))};
}

}  // namespace

std::unique_ptr<Sink> open_log(const std::string& text, const LoggedRun& run) {
  const auto [kind, where] = split_log(text);
  return kind->open(where, run);
}

void check_log(const std::string& text) {
  const auto [kind, where] = split_log(text);
  if (kind->check) kind->check(where);
}

}  // namespace millrace::track
