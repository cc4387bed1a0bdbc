#include "base/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/memory_nodes.h"
#include "base/thread_pool.h"

namespace millrace {

void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& body) {
  if (threads <= 0) threads = available_cpus();
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  int64_t failed = count;  // numbers are handed out in order, so all below the lowest failure were tried
  std::exception_ptr error;
  const auto work = [&] {
    while (true) {
      const int64_t i = next++;
      if (i >= count) return;
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) {
          failed = i;
          error = std::current_exception();
        }
        next = count;
        return;
      }
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads && i < count; ++i)
    others.emplace_back([&, i] {
      MemoryNodes::here().settle_in_turn(i);
      work();
    });
  work();
  for (std::thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
}

void parallel_parts(int64_t count, int64_t part, int threads,
                    const std::function<void(int64_t, int64_t)>& body) {
  parallel_for((count + part - 1) / part, threads,
               [&](int64_t p) { body(p * part, std::min((p + 1) * part, count)); });
}

}  // namespace millrace
