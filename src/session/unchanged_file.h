// Whether the file that a model lies in is as it was.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/mapped_file.h"

namespace millrace {

/// Throws away what was computed of a file that was written to meanwhile, or cut short.
class UnchangedFile {
 public:
  /// `look` throws then; empty: the model lies in memory.
  explicit UnchangedFile(std::function<void()> look) : look_(std::move(look)) {}

  /// To be called after each run. A look takes a microsecond, as the run of a small network does, and comes
  /// once a millisecond at most, but where a part of some file is gone.
  void require() {
    if (!look_) return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const bool soon = now < std::chrono::nanoseconds(next_.load(std::memory_order_relaxed));
    if (soon && !any_mapped_file_lost()) return;
    look_();
    next_.store(std::chrono::nanoseconds(now + std::chrono::milliseconds(1)).count(),
                std::memory_order_relaxed);
  }

 private:
  const std::function<void()> look_;
  std::atomic<int64_t> next_{0};
};

}  // namespace millrace
