// Where a thread's time goes.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

namespace millrace::data {

/// Where the calling thread's time went, in nanoseconds.
class ThreadTimes {
 public:
  struct Times {
    int64_t cpu = 0, queued = 0, wall = 0;
  };
  ThreadTimes() : statistics_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~ThreadTimes() {
    if (statistics_ >= 0) ::close(statistics_);
  }
  ThreadTimes(const ThreadTimes&) = delete;
  ThreadTimes& operator=(const ThreadTimes&) = delete;

  Times now() const {
    Times times{clock(CLOCK_THREAD_CPUTIME_ID), 0, clock(CLOCK_MONOTONIC)};
    char text[96];  // "on a CPU, in line for one, time slices"
    const ssize_t size = statistics_ < 0 ? 0 : ::pread(statistics_, text, sizeof text, 0);
    const char* const end = text + std::max<ssize_t>(size, 0);
    if (const char* second = std::find(static_cast<const char*>(text), end, ' '); second != end)
      std::from_chars(second + 1, end, times.queued);
    return times;
  }

 private:
  static int64_t clock(clockid_t which) {
    timespec time{};
    return ::clock_gettime(which, &time) == 0 ? int64_t{1000000000} * time.tv_sec + time.tv_nsec : 0;
  }
  int statistics_;
};

}  // namespace millrace::data
