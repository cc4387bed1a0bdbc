#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sched.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/memory_nodes.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// CPUs granted by the quota of one group of either version, or 0 when there is none.
double group_cpus(const fs::path& group) {
  std::string quota;
  double period = 0;
  if (std::ifstream v2(group / "cpu.max"); v2 >> quota >> period && quota != "max" && period > 0)
    return std::atof(quota.c_str()) / period;
  double microseconds = 0;
  std::ifstream q(group / "cpu.cfs_quota_us"), p(group / "cpu.cfs_period_us");
  if (q >> microseconds && p >> period && microseconds > 0 && period > 0) return microseconds / period;
  return 0;
}

thread_local bool inside_chunk = false;

// How long a thread spins before it sleeps. Within a step the next loop mostly comes in less than the first;
// the second bridges the gap between two steps that follow each other at once; the third is what a loop's
// last chunk may take longer than the others.
constexpr std::chrono::microseconds kSpinInStep{100}, kSpinBetween{20}, kSpinForLast{30};

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

/// Spins while `waiting()`; false when that took longer than `limit()`, which is asked anew now and then.
template <typename Waiting, typename Limit>
bool spin(Waiting&& waiting, Limit&& limit) {
  const auto begin = Clock::now();
  for (;;) {
    for (int i = 0; i < 16; ++i) {
      if (!waiting()) return true;
      relax();
    }
    if (Clock::now() - begin > limit()) return !waiting();
  }
}

}  // namespace

double cgroup_cpus(const std::string& root, const std::string& membership) {
  double least = 0;
  const auto take = [&](double cpus) {
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
  };
  take(group_cpus(root));
  take(group_cpus(fs::path(root) / "cpu"));
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    // "0::/a/b" in version 2, "4:cpu,cpuacct:/a/b" in version 1; the quotas of all groups above hold too.
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const fs::path base = v2 ? fs::path(root) : fs::path(root) / "cpu";
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (; !group.empty(); group = group.parent_path()) take(group_cpus(base / group));
  }
  return least;
}

namespace {
std::atomic<int> cpus_asked_for{0};
}

void use_cpus(int cpus) { cpus_asked_for = cpus; }

int available_cpus() {
  if (const int asked = cpus_asked_for; asked > 0) return asked;
  cpu_set_t set;
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
  static const double quota = cgroup_cpus("/sys/fs/cgroup", "/proc/self/cgroup");
  if (quota > 0) cpus = std::min(cpus, static_cast<int>(std::ceil(quota)));
  return std::max(cpus, 1);
}

// One loop at a time. A loop is published by bumping `generation`; workers enter it by incrementing `active`
// under the same check, and the caller leaves only when all chunks are done and no worker is inside.
//
// Every thread has a range of the chunks and goes on to those of others when it is done with its own. So
// neighbouring chunks, and the same part of the data in loop after loop, mostly stay with one core and its
// cache.
struct ThreadPool::State {
  std::vector<std::thread> workers;
  std::mutex submit;  // serialises callers from different threads
  std::atomic<bool> stop{false};
  std::atomic<int> steps{0};  // Step objects alive

  alignas(64) std::atomic<uint32_t> generation{0};  // odd while a loop is open
  alignas(64) std::atomic<int> active{0};
  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  std::unique_ptr<Range[]> ranges;  // one a thread, the caller's first
  int threads = 1;
  ChunkFunction function = nullptr;
  void* context = nullptr;
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  std::mutex error_mutex;

  void open(int64_t chunks) {
    for (int t = 0; t < threads; ++t) {
      ranges[t].next.store(chunks * t / threads, std::memory_order_relaxed);
      ranges[t].end = chunks * (t + 1) / threads;
    }
  }

  void work(int thread) {
    inside_chunk = true;
    for (int t = 0; t < threads; ++t) {
      Range& range = ranges[(thread + t) % threads];
      while (range.next.load(std::memory_order_relaxed) < range.end) {
        const int64_t chunk = range.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= range.end) break;
        try {
          function(context, chunk);
        } catch (...) {
          std::lock_guard lock(error_mutex);
          if (!error) error = std::current_exception();
          failed = true;
        }
      }
    }
    inside_chunk = false;
  }

  /// Waits for a loop other than the one `seen`: awake for a bounded time, then asleep.
  uint32_t await_loop(uint32_t seen) {
    const auto none = [&](uint32_t g) { return (g == seen || g % 2 == 0) && !stop; };
    uint32_t now = generation.load();
    if (!none(now)) return now;
    spin([&] { return none(now = generation.load()); },
         [&] { return steps.load(std::memory_order_relaxed) > 0 ? kSpinInStep : kSpinBetween; });
    for (; none(now); now = generation.load()) generation.wait(now);
    return now;
  }

  void worker(int thread) {
    MemoryNodes::here().settle(thread, threads);
    uint32_t seen = 0;
    for (;;) {
      const uint32_t now = await_loop(seen);
      if (stop) return;
      active.fetch_add(1);
      // The loop may have closed between the load and the increment; only an open one may be entered.
      if (generation.load() == now) work(thread);
      if (active.fetch_sub(1) == 1) active.notify_one();
      seen = now;
    }
  }

  /// After a loop was closed: until the last worker has left it.
  void await_workers() {
    if (spin([&] { return active.load() != 0; }, [] { return kSpinForLast; })) return;
    // The worker may have lost its CPU to somebody: let it have this one.
    for (int left = active.load(); left != 0; left = active.load()) active.wait(left);
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = available_cpus();
  state_->threads = threads;
  state_->ranges = std::make_unique<State::Range[]>(static_cast<size_t>(threads));
  for (int i = 1; i < threads; ++i) state_->workers.emplace_back([this, i] { state_->worker(i); });
}

ThreadPool::~ThreadPool() {
  state_->stop = true;
  state_->generation.fetch_add(2);
  state_->generation.notify_all();
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
  s.open(chunks);
  s.function = function;
  s.context = context;
  s.generation.fetch_add(1);  // opens the loop
  s.generation.notify_all();  // a system call only when somebody sleeps
  s.work(0);
  s.generation.fetch_add(1);  // closes it: no worker enters from now on
  if (s.active.load() != 0) s.await_workers();
  if (s.failed.exchange(false)) std::rethrow_exception(std::exchange(s.error, nullptr));
}

ThreadPool::Step::Step(ThreadPool& pool) : pool_(pool) {
  pool_.state_->steps.fetch_add(1, std::memory_order_relaxed);
}
ThreadPool::Step::~Step() { pool_.state_->steps.fetch_sub(1, std::memory_order_relaxed); }

namespace {
/// The last is the one in use. Those before it stay, asleep: programs that were compiled for them may still
/// run.
std::vector<std::unique_ptr<ThreadPool>>& global_pools() {
  static std::vector<std::unique_ptr<ThreadPool>> pools;
  return pools;
}
std::mutex global_mutex;
}  // namespace

ThreadPool& ThreadPool::global() {
  std::lock_guard lock(global_mutex);
  if (global_pools().empty()) global_pools().push_back(std::make_unique<ThreadPool>());
  return *global_pools().back();
}

void ThreadPool::set_default_threads(int threads) {
  std::lock_guard lock(global_mutex);
  const int wanted = threads > 0 ? threads : available_cpus();
  if (global_pools().empty() || global_pools().back()->threads() != wanted)
    global_pools().push_back(std::make_unique<ThreadPool>(wanted));
}

}  // namespace millrace
