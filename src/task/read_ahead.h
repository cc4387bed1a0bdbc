// What is read while somebody works on what was read before.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::task {

/// Makes values 0, 1, … `count` - 1 by some threads, as far ahead as `threads` and a few more, and hands them
/// out in order.
template <typename Value>
class ReadAhead {
 public:
  ReadAhead(size_t count, int threads, std::function<Value(size_t)> make)
      : count_(count), ahead_(static_cast<size_t>(threads) + 4), make_(std::move(make)) {
    const size_t used = std::min(count, static_cast<size_t>(std::max(threads, 1)));
    for (size_t i = 0; i < used; ++i) threads_.emplace_back([this] { run(); });
  }
  ~ReadAhead() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The next one. Throws what was thrown when it was made.
  Value take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.contains(taken_); });
    Made made = std::move(ready_.extract(taken_++).mapped());
    lock.unlock();
    changed_.notify_all();
    if (made.error) std::rethrow_exception(made.error);
    return std::move(made.value);
  }

 private:
  struct Made {
    Value value{};
    std::exception_ptr error;
  };

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopped_ || begun_ == count_ || begun_ < taken_ + ahead_; });
      if (stopped_ || begun_ == count_) return;
      const size_t own = begun_++;
      lock.unlock();
      Made made;
      try {
        made.value = make_(own);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      ready_.emplace(own, std::move(made));
      changed_.notify_all();
    }
  }

  const size_t count_, ahead_;
  const std::function<Value(size_t)> make_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<size_t, Made> ready_;
  size_t begun_ = 0, taken_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace millrace::task
