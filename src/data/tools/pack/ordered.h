// Work done by several threads, its results taken in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::data {

/// make(first), make(first + 1) … make(end - 1), some of them ahead of time: at most `window` results wait or
/// are being made. With one thread each is made when it is asked for, by the caller.
template <class T>
class Ordered {
 public:
  Ordered(int64_t first, int64_t end, int threads, int64_t window, std::function<T(int64_t)> make)
      : next_(first), taken_(first), end_(end), make_(std::move(make)) {
    if (threads <= 1) return;
    slots_.resize(static_cast<size_t>(window));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Ordered() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Ordered(const Ordered&) = delete;
  Ordered& operator=(const Ordered&) = delete;

  /// The next one; what its make() threw is thrown here. To be called end - first times at most.
  T next() {
    if (threads_.empty()) return make_(taken_++);
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[static_cast<size_t>(taken_) % slots_.size()];
    made_.wait(lock, [&] { return slot.ready; });
    slot.ready = false;
    const std::exception_ptr error = std::exchange(slot.error, nullptr);
    T value = std::move(slot.value);
    slot.value = T();
    ++taken_;
    room_.notify_one();
    if (error) std::rethrow_exception(error);
    return value;
  }

 private:
  struct Slot {
    bool ready = false;
    T value;
    std::exception_ptr error;
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [&] {
        return stop_ || next_ >= end_ || next_ < taken_ + static_cast<int64_t>(slots_.size());
      });
      if (stop_ || next_ >= end_) return;
      const int64_t i = next_++;
      lock.unlock();
      T value{};
      std::exception_ptr error;
      try {
        value = make_(i);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      Slot& slot = slots_[static_cast<size_t>(i) % slots_.size()];
      slot.value = std::move(value);
      slot.error = error;
      slot.ready = true;
      made_.notify_one();
    }
  }

  int64_t next_, taken_, end_;
  std::function<T(int64_t)> make_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable made_, room_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace millrace::data
