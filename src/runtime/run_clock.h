// Times of the launches of a program, taken while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace millrace {

/// Nanoseconds of the steady clock.
inline int64_t clock_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// One stamp at the begin of a run, one after each launch, one at the end: a launch costs one reading of the
/// clock.
class RunClock {
 public:
  explicit RunClock(size_t launches) : stamps_(launches + 2) { grow(64); }

  void begin() {
    times_.resize(times_.size() / stamps_ * stamps_);  // without what an exception cut short
    if (times_.size() + stamps_ > times_.capacity()) grow(2 * times_.capacity() / stamps_);
    mark();
  }
  void mark() { mark(clock_now()); }
  void mark(int64_t time) { times_.push_back(time); }

  /// The complete runs; what an exception cut short is left out.
  std::vector<std::vector<int64_t>> runs() const {
    std::vector<std::vector<int64_t>> all;
    for (size_t at = 0; at + stamps_ <= times_.size(); at += stamps_)
      all.emplace_back(times_.begin() + static_cast<int64_t>(at),
                       times_.begin() + static_cast<int64_t>(at + stamps_));
    return all;
  }

 private:
  void grow(size_t runs) { times_.reserve(runs * stamps_); }
  size_t stamps_;
  std::vector<int64_t> times_;
};

}  // namespace millrace
