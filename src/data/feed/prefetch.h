// Batches made ahead of the one who takes them, by threads. Part of the feeds.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <millrace/feed.h>

#include "data/feed/appetite.h"
#include "data/feed/thread_times.h"

namespace millrace::data {

/// Batches are numbered from start() on. Number k lies in slot k modulo the number of slots. Threads claim
/// numbers in order, each makes its batch alone, and the consumer takes them in order, without a lock where
/// they are ready; the slot of the batch that it holds is free again when it asks for the next one. Threads
/// that the consumer does not need sleep (appetite.h).
class Prefetch {
 public:
  /// What makes batches.
  class Source {
   public:
    /// What one thread works with.
    struct Worker {
      virtual ~Worker() = default;
    };
    virtual ~Source() = default;
    virtual std::unique_ptr<Worker> worker() const = 0;
    /// The next batch is going to be made in this slot; one thread at a time, in the order of batches.
    virtual void claim(size_t slot) = 0;
    /// Makes it, in any thread; what it throws next() does. Returns how many samples it has.
    virtual int64_t fill(size_t slot, Worker& worker) = 0;
  };

  /// `slots` ≥ 2. The source must stay.
  Prefetch(Source& source, int threads, size_t slots);
  ~Prefetch() { halt(); }
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Begins anew, after halt(). IoError when threads cannot be had.
  void start();
  /// Ends all work; what was made and not taken is lost.
  void halt();

  /// The slot of the next batch, which stays as it is until the next call. Rethrows what went wrong with it,
  /// each time.
  size_t next();
  /// Waits so long at the most; true when next() would not wait.
  bool ready(double seconds);
  LoaderWork work() const { return work_.sum(); }

 private:
  struct Slot {
    std::atomic<bool> ready{false};
    std::exception_ptr error;
  };
  void run(int number);
  bool claim(size_t& slot);

  Source& source_;
  const int count_;
  std::vector<Slot> slots_;
  std::atomic<uint64_t> taken_{0};
  std::atomic<size_t> filled_{0};  // slots that are ready
  // `bell_` rings once for each slot that becomes free; those that are not wanted sleep at `more_`.
  std::atomic<uint32_t> bell_{0}, more_{0};
  std::atomic<bool> stop_{false};
  std::unique_ptr<Appetite> appetite_;
  std::mutex mutex_;  // guards what follows, and is held where a slot becomes ready
  std::condition_variable done_;
  uint64_t claimed_ = 0;
  std::vector<std::thread> threads_;
  WorkSum work_;
};

}  // namespace millrace::data
