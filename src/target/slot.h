// Scratch memory for chunks that run at the same time.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <thread>

#include "base/thread_pool.h"

namespace millrace {

/// Slots, and which are in use. A copy, which belongs to other scratch memory, begins with none of these.
class Slots {
 public:
  Slots() = default;
  /// For so many chunks: as many as may run at the same time.
  explicit Slots(int64_t chunks, int most = available_cpus())
      : count_(static_cast<int>(std::min<int64_t>({chunks, most, 64}))) {}
  Slots(const Slots& other) : count_(other.count_) {}
  Slots& operator=(const Slots& other) {
    count_ = other.count_;
    return *this;
  }
  int count() const { return count_; }

 private:
  friend class Slot;
  int count_ = 1;
  std::atomic<uint64_t> taken_{0};  // a bit each
};

/// Holds one of the slots. There are as many as CPUs, so that with more threads than that one may have to
/// wait.
class Slot {
 public:
  explicit Slot(Slots& of) : taken_(of.taken_) {
    const uint64_t all = of.count_ >= 64 ? ~uint64_t{0} : (uint64_t{1} << of.count_) - 1;
    uint64_t seen = taken_.load(std::memory_order_relaxed);
    for (;;) {
      if (const uint64_t free = ~seen & all; free == 0) {
        std::this_thread::yield();
        seen = taken_.load(std::memory_order_relaxed);
      } else if (bit_ = free & (~free + 1);
                 taken_.compare_exchange_weak(seen, seen | bit_, std::memory_order_acquire)) {
        return;
      }
    }
  }
  ~Slot() { taken_.fetch_and(~bit_, std::memory_order_release); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  int index() const { return std::countr_zero(bit_); }

 private:
  std::atomic<uint64_t>& taken_;
  uint64_t bit_ = 0;
};

}  // namespace millrace
