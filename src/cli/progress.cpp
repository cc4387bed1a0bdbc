#include "cli/progress.h"

#include <cmath>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// A line of progress that cannot be written stops no training; the verb's end reports it.
void put_progress(const std::string& text) { std::fputs(text.c_str(), stdout); }

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e8) return "?";
  const auto s = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string status_line(const train::Status& s) {
  return fmt::format("step {}/{}  epoch {:.1f}/{:.4g}  {} {}  {}  {} {}/s  {} left", s.step, s.steps, s.epoch,
                     s.epochs, thousands(s.samples), s.unit, train::progress_text(s.loss, s.metrics),
                     thousands(std::llround(s.per_second)), s.unit, duration_text(s.seconds_left));
}

Progress::Progress() : terminal_(::isatty(STDOUT_FILENO) != 0), last_(Clock::time_point::min()) {}

Progress::~Progress() { finish(); }

bool Progress::due() const {
  return last_ == Clock::time_point::min() ||
         Clock::now() - last_ >=
             (terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(5000));
}

void Progress::update(const std::string& text) {
  if (!due()) return;
  last_ = Clock::now();
  if (terminal_) {
    put_progress("\r\033[K" + text.substr(0, terminal_columns() - 1));
    shown_ = true;
  } else {
    put_progress(text + "\n");
  }
  std::fflush(stdout);
}

void Progress::erase() {
  if (shown_) put_progress("\r\033[K");
  shown_ = false;
}

void Progress::print(const std::string& text) {
  erase();
  put_progress(text + "\n");
  std::fflush(stdout);
  // The live line goes on below the printed one at once, not at its next turn.
  if (terminal_) last_ = Clock::time_point::min();
}

void Progress::finish() {
  if (shown_) put_progress("\n");
  shown_ = false;
  std::fflush(stdout);
}

}  // namespace millrace::cli
