#include "base/counters.h"

#include <cstring>
#include <filesystem>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace millrace {
namespace {

std::vector<int> thread_ids() {
  std::vector<int> ids;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error))
    ids.push_back(std::atoi(entry.path().filename().c_str()));
  return ids;
}

int open_counter(const CounterEvent& event, int thread) {
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.exclude_kernel = event.type == PERF_TYPE_HARDWARE;  // what an ordinary user may count
  attributes.exclude_hv = 1;
  // The kernel shares few counters among more events by taking turns, and says for how long each one counted.
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

std::vector<CounterEvent> hardware_events() {
  return {{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
          {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
          {"cache misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}};
}

Counters::Counters(const std::vector<CounterEvent>& events) {
  const std::vector<int> threads = thread_ids();
  for (const CounterEvent& event : events) {
    std::vector<int> files;
    for (const int thread : threads)
      if (const int file = open_counter(event, thread); file >= 0) files.push_back(file);
    // A part of the threads would be a wrong number, which is worse than none.
    if (files.size() == threads.size() && !files.empty()) {
      names_.push_back(event.name);
      files_.push_back(std::move(files));
    } else {
      for (const int file : files) close(file);
    }
  }
}

Counters::~Counters() {
  for (const auto& files : files_)
    for (const int file : files) close(file);
}

std::vector<double> Counters::read() const {
  std::vector<double> counts;
  for (const auto& files : files_) {
    double sum = 0;
    for (const int file : files) {
      uint64_t value[3] = {0, 0, 0};  // count, nanoseconds wanted, nanoseconds counted
      if (::read(file, value, sizeof value) != sizeof value || value[2] == 0) continue;
      sum += static_cast<double>(value[0]) * static_cast<double>(value[1]) / static_cast<double>(value[2]);
    }
    counts.push_back(sum);
  }
  return counts;
}

}  // namespace millrace
