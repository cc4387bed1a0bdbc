// Work that goes on behind the thread that hands it in.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace millrace::task {

/// Calls `work` for what is handed in, on a thread of its own, in order. What waits behind something that
/// fails is dropped.
template <typename T>
class Behind {
 public:
  explicit Behind(std::function<void(T)> work) : work_(std::move(work)), thread_([this] { run(); }) {}
  /// Waits; what goes wrong then is lost, so who must know calls wait() before.
  ~Behind() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  /// Waits where much is waiting already. Throws what the work threw, which is told once.
  void add(T item) {
    constexpr size_t most = 8;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() < most; });
    rethrow();
    waiting_.push_back(std::move(item));
    changed_.notify_all();
  }
  /// Returns when all is done. Throws what the work threw.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.empty() && !working_; });
    rethrow();
  }
  /// Throws what the work threw, if it is known; waits for nothing.
  void check() {
    const std::lock_guard lock(mutex_);
    rethrow();
  }

 private:
  void rethrow() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !waiting_.empty() || ended_; });
      if (waiting_.empty()) return;
      T item = std::move(waiting_.front());
      waiting_.pop_front();
      working_ = true;
      lock.unlock();
      changed_.notify_all();
      std::exception_ptr failed;
      try {
        work_(std::move(item));
      } catch (...) {
        failed = std::current_exception();
      }
      lock.lock();
      working_ = false;
      if (failed) {
        failure_ = failed;
        waiting_.clear();
      }
      changed_.notify_all();
    }
  }

  std::function<void(T)> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> waiting_;
  std::exception_ptr failure_;
  bool working_ = false, ended_ = false;
  std::thread thread_;
};

}  // namespace millrace::task
