// How a training looks while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>

#include "base/size_text.h"
#include "train/status.h"

namespace millrace::cli {

/// "12 %  1,234 pictures/s  4:05 left  loss 1.2340  accuracy 54.30 %  step 120/980  epoch 1.2/10  122,880
/// pictures": of that as much as `columns` hold, what is done and how long it will take before all else.
std::string status_line(const train::Status& status, size_t columns);
/// "4:05", "1:02:03"
std::string duration_text(double seconds);

/// One line that is rewritten in place on a terminal (a few times a second), else plain lines every few
/// seconds.
class Progress {
 public:
  /// `to`: standard error where standard output is for what the verb makes.
  explicit Progress(std::FILE* to = stdout);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows `text` when it is time to. `last`: nothing follows of its kind, so that it is shown in any case
  /// where an earlier one was, and no half of the work stays as the last word.
  /// `kind`: of several that go on at once, such as steps and the tests between them.
  void update(const std::string& text, bool last = false, const std::string& kind = "");
  /// update() by "120 of 980 samples" behind `before`.
  void count(const std::string& before, int64_t done, int64_t total, const std::string& unit = "");
  /// Would update() show something now?
  bool due(bool last = false, const std::string& kind = "") const;
  /// Of a line; more than enough where it is no terminal.
  size_t columns() const;
  /// A line that stays, above the live one.
  void print(const std::string& text);
  /// Ends the live line, its last state kept.
  void finish();

 private:
  void erase();
  void put(const std::string& text) const;
  std::FILE* to_;
  bool terminal_ = false, shown_ = false;
  std::set<std::string> open_;  // kinds whose last update() was not the last
  std::chrono::steady_clock::time_point last_;
};

/// What verbs that train or measure a model show meanwhile; with --json, where standard output is for the
/// object alone, messages go to standard error. `progress` must stay.
train::Observer measuring_observer(Progress& progress, bool json);

}  // namespace millrace::cli
