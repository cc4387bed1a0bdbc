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

/// Calls `work` for what is handed in, on a thread of its own, in order.
template <typename T>
class Behind {
 public:
  explicit Behind(std::function<void(T)> work) : work_(std::move(work)), thread_([this] { run(); }) {}
  ~Behind() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  /// Waits where much is waiting already. Throws what the work threw.
  void add(T item) {
    constexpr size_t most = 8;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() < most || error_; });
    if (error_) std::rethrow_exception(error_);
    waiting_.push_back(std::move(item));
    changed_.notify_all();
  }
  /// Returns when all is done.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !waiting_.empty() || ended_; });
      if (waiting_.empty()) return;
      T item = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      changed_.notify_all();
      try {
        work_(std::move(item));
      } catch (...) {
        const std::lock_guard again(mutex_);
        error_ = std::current_exception();
        changed_.notify_all();
        return;
      }
      lock.lock();
    }
  }

  std::function<void(T)> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> waiting_;
  std::exception_ptr error_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace millrace::task
