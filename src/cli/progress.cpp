#include "cli/progress.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <set>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

size_t terminal_columns(int file) {
  winsize size{};
  return ::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e8) return "?";
  const auto s = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string status_line(const train::Status& s, size_t columns) {
  struct Part {
    int rank;  // what has room first
    std::string text;
  };
  const double share = s.steps > 0 ? static_cast<double>(s.step) / static_cast<double>(s.steps) : 0;
  std::vector<Part> parts = {{0, fmt::format("{:.0f} %", std::floor(100 * share))},
                             {2, fmt::format("{} {}/s", thousands(std::llround(s.per_second)), s.unit)},
                             {1, fmt::format("{} left", duration_text(s.seconds_left))},
                             {3, train::progress_text(s.loss, {})}};
  for (const train::NamedValue& metric : s.metrics) parts.push_back({4, train::metric_text(metric)});
  parts.push_back({5, fmt::format("step {}/{}", s.step, s.steps)});
  parts.push_back({6, fmt::format("epoch {:.1f}/{:.4g}", s.epoch, s.epochs)});
  parts.push_back({7, fmt::format("{} {}", thousands(s.samples), s.unit)});
  std::vector<const Part*> by_rank;
  for (const Part& part : parts) by_rank.push_back(&part);
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [](const Part* a, const Part* b) { return a->rank < b->rank; });
  size_t room = columns;
  std::set<const Part*> fit;
  for (const Part* part : by_rank) {
    const size_t wanted = part->text.size() + (fit.empty() ? 0 : 2);
    if (wanted > room) break;
    room -= wanted;
    fit.insert(part);
  }
  std::string line;
  for (const Part& part : parts)
    if (fit.contains(&part)) line += (line.empty() ? "" : "  ") + part.text;
  return line;
}

Progress::Progress(std::FILE* to)
    : to_(to), terminal_(::isatty(::fileno(to)) != 0), last_(Clock::time_point::min()) {}

Progress::~Progress() { finish(); }

/// A line of progress that cannot be written stops no training; the verb's end reports it.
void Progress::put(const std::string& text) const { std::fputs(text.c_str(), to_); }

bool Progress::due(bool last, const std::string& kind) const {
  return (last && open_.contains(kind)) || last_ == Clock::time_point::min() ||
         Clock::now() - last_ >=
             (terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(5000));
}

size_t Progress::columns() const { return terminal_ ? terminal_columns(::fileno(to_)) - 1 : 1000; }

void Progress::update(const std::string& text, bool last, const std::string& kind) {
  if (!due(last, kind)) return;
  last_ = Clock::now();
  if (last)
    open_.erase(kind);
  else
    open_.insert(kind);
  if (terminal_) {
    put("\r\033[K" + text.substr(0, columns()));
    shown_ = true;
  } else {
    put(text + "\n");
  }
  std::fflush(to_);
}

void Progress::count(const std::string& before, int64_t done, int64_t total, const std::string& unit) {
  if (due(done == total, before))
    update(fmt::format("{}{} of {}{}{}", before, thousands(done), thousands(total), unit.empty() ? "" : " ",
                       unit),
           done == total, before);
}

void Progress::erase() {
  if (shown_) put("\r\033[K");
  shown_ = false;
}

void Progress::print(const std::string& text) {
  erase();
  put(text + "\n");
  std::fflush(to_);
  // The live line goes on below the printed one at once, not at its next turn.
  if (terminal_) last_ = Clock::time_point::min();
}

void Progress::finish() {
  if (shown_) put("\n");
  shown_ = false;
  std::fflush(to_);
}

train::Observer measuring_observer(Progress& progress, bool json) {
  train::Observer observer;
  observer.message = [&progress, json](const std::string& line) {
    if (json)
      fmt::print(stderr, "{}\n", line);
    else
      progress.print(line);
  };
  observer.busy = [&progress, json](const std::string& what, int64_t done, int64_t total) {
    if (!json) progress.count(what + ": ", done, total);
  };
  return observer;
}

}  // namespace millrace::cli
