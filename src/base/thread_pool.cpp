#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <immintrin.h>
#include <mutex>
#include <sched.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace millrace {
namespace {

/// CPUs granted by the cgroup's quota, or 0 when there is none.
double cgroup_cpus() {
  std::string quota;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period && quota != "max" && period > 0)
    return std::stod(quota) / period;
  double microseconds = 0;
  std::ifstream q("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), p("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (q >> microseconds && p >> period && microseconds > 0 && period > 0) return microseconds / period;
  return 0;
}

thread_local bool inside_chunk = false;

}  // namespace

int available_cpus() {
  cpu_set_t set;
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
  if (const double quota = cgroup_cpus(); quota > 0)
    cpus = std::min(cpus, static_cast<int>(std::ceil(quota)));
  return std::max(cpus, 1);
}

// One loop at a time. A loop is published by bumping `generation`; workers enter it by incrementing `active`
// under the same check, and the caller leaves only when all chunks are done and no worker is inside.
struct ThreadPool::State {
  std::vector<std::thread> workers;
  std::mutex submit;  // serialises callers from different threads

  std::mutex mutex;  // guards sleeping
  std::condition_variable wake;
  std::atomic<int> sleeping{0};
  std::atomic<bool> stop{false};

  std::atomic<uint64_t> generation{0};  // odd while a loop is open
  std::atomic<int> active{0};
  std::atomic<int64_t> next{0};
  int64_t chunks = 0;
  ChunkFunction function = nullptr;
  void* context = nullptr;
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  std::mutex error_mutex;

  void work() {
    inside_chunk = true;
    for (;;) {
      const int64_t chunk = next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks) break;
      try {
        function(context, chunk);
      } catch (...) {
        std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
        failed = true;
      }
    }
    inside_chunk = false;
  }

  void worker() {
    uint64_t seen = 0;
    for (;;) {
      uint64_t now = generation.load();
      // Spin for a bounded time (some tens of microseconds), then sleep until the next loop.
      for (int spin = 0; (now == seen || now % 2 == 0) && !stop; ++spin) {
        if (spin < 4000) {
          _mm_pause();
        } else {
          std::unique_lock lock(mutex);
          sleeping.fetch_add(1);
          wake.wait(lock, [&] { return stop || (generation.load() != seen && generation.load() % 2 == 1); });
          sleeping.fetch_sub(1);
        }
        now = generation.load();
      }
      if (stop) return;
      active.fetch_add(1);
      // The loop may have closed between the load and the increment; only an open one may be entered.
      if (generation.load() == now) work();
      active.fetch_sub(1);
      seen = now;
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = available_cpus();
  for (int i = 1; i < threads; ++i) state_->workers.emplace_back([this] { state_->worker(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::run(int64_t chunks, ChunkFunction function, void* context) {
  State& s = *state_;
  if (chunks <= 0) return;
  if (inside_chunk || chunks == 1 || s.workers.empty()) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) function(context, chunk);
    return;
  }
  std::lock_guard submit(s.submit);
  s.chunks = chunks;
  s.function = function;
  s.context = context;
  s.next.store(0);
  s.generation.fetch_add(1);  // opens the loop
  if (s.sleeping.load() > 0) {
    std::lock_guard lock(s.mutex);
    s.wake.notify_all();
  }
  s.work();
  s.generation.fetch_add(1);  // closes it: nobody enters any more
  while (s.active.load() != 0) _mm_pause();
  if (s.failed.exchange(false)) std::rethrow_exception(std::exchange(s.error, nullptr));
}

namespace {
std::unique_ptr<ThreadPool>& global_pool() {
  static std::unique_ptr<ThreadPool> pool;
  return pool;
}
std::mutex global_mutex;
}  // namespace

ThreadPool& ThreadPool::global() {
  std::lock_guard lock(global_mutex);
  if (!global_pool()) global_pool() = std::make_unique<ThreadPool>();
  return *global_pool();
}

void ThreadPool::set_default_threads(int threads) {
  std::lock_guard lock(global_mutex);
  global_pool() = std::make_unique<ThreadPool>(threads);
}

}  // namespace millrace
