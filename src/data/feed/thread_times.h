// Where a thread's time goes.
#pragma once

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <millrace/feed.h>

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

/// The work of several threads.
class WorkSum {
 public:
  void add(int64_t samples, const ThreadTimes::Times& begin, const ThreadTimes::Times& end) {
    samples_ += samples;
    cpu_ += end.cpu - begin.cpu;
    queued_ += end.queued - begin.queued;
    wall_ += end.wall - begin.wall;
  }
  LoaderWork sum() const { return {samples_, seconds(cpu_), seconds(queued_), seconds(wall_)}; }

 private:
  static double seconds(int64_t time) { return static_cast<double>(time) * 1e-9; }
  std::atomic<int64_t> samples_{0}, cpu_{0}, queued_{0}, wall_{0};  // nanoseconds
};

}  // namespace millrace::data
