// Saying what takes long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/format.h"

namespace millrace::train {

/// While it lives, `say` is told what is being done: after two seconds, then more and more rarely. It is
/// called by another thread, so that nobody else may use what it writes to meanwhile.
class LongWork {
 public:
  LongWork(std::function<void(const std::string&)> say, std::string what,
           std::chrono::milliseconds first = std::chrono::seconds(2))
      : thread_([this, say = std::move(say), what = std::move(what), first] {
          const auto begin = std::chrono::steady_clock::now();
          std::unique_lock lock(mutex_);
          for (auto next = first; !done_.wait_until(lock, begin + next, [&] { return over_; }); next *= 3)
            say(fmt::format("{}: {:.0f} s so far", what, std::chrono::duration<double>(next).count()));
        }) {}
  ~LongWork() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    done_.notify_all();
    thread_.join();
  }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool over_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace millrace::train
