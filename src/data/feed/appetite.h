// How many of a loader's threads work, so that they keep out of the model's way: more when it had to wait for
// a batch, fewer when batches wait for it. Results never depend on it.
#pragma once

#include <algorithm>
#include <atomic>

namespace millrace::data {

class Appetite {
 public:
  explicit Appetite(int threads) : most_(threads), active_(threads) {}

  /// Threads with a number below this one work. For any thread.
  int active() const { return active_.load(std::memory_order_acquire); }

  /// Of each batch that is handed over, by the one who takes it: did it `wait`, or were all batches ahead
  /// ready (`full`)? True when more threads work from now on.
  bool handed_over(bool waited, bool full) {
    const int now = active();
    if (waited) {
      calm_ = 0;
      if (shrank_) patience_ = std::min(2 * patience_, longest_);  // that was one too few
      shrank_ = false;
      if (now < most_) active_.store(now + 1, std::memory_order_release);
      return now < most_;
    }
    calm_ = full ? calm_ + 1 : 0;
    if (calm_ < patience_) return false;
    calm_ = 0;
    shrank_ = now > 1;
    if (now > 1) active_.store(now - 1, std::memory_order_release);
    return false;
  }

 private:
  static constexpr int longest_ = 4096;
  const int most_;
  std::atomic<int> active_;
  int calm_ = 0, patience_ = 16;  // batches
  bool shrank_ = false;           // since the last wait
};

}  // namespace millrace::data
