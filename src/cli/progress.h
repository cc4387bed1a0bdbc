// How a training looks while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/size_text.h"
#include "train/status.h"

namespace millrace::cli {

/// "step 120/980  epoch 1.2/10  122,880 pictures  loss 1.2340  accuracy 54.30 %  1,234 pictures/s  4:05 left"
std::string status_line(const train::Status& status);
/// "4:05", "1:02:03"
std::string duration_text(double seconds);

/// One line that is rewritten in place on a terminal (a few times a second), else plain lines every few
/// seconds.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows `text` when it is time to.
  void update(const std::string& text);
  bool due() const;
  /// A line that stays, above the live one.
  void print(const std::string& text);
  /// Ends the live line, its last state kept.
  void finish();

 private:
  void erase();
  bool terminal_ = false, shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace millrace::cli
