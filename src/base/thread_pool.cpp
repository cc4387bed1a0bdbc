#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <immintrin.h>
#include <mutex>
#include <sched.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

/// Spins while `waiting()`; false when that took longer than `limit()`, which is asked anew now and then.
template <typename Waiting, typename Limit>
bool spin(Waiting&& waiting, Limit&& limit) {
  const auto begin = Clock::now();
  for (;;) {
    for (int i = 0; i < 16; ++i) {
      if (!waiting()) return true;
      _mm_pause();
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
  // The second one reads files.
  int cpus = sched_getaffinity(0, sizeof set, &set) == 0
                 ? CPU_COUNT(&set)
                 : static_cast<int>(std::thread::hardware_concurrency());
  static const double quota = cgroup_cpus("/sys/fs/cgroup", "/proc/self/cgroup");
  if (quota > 0) cpus = std::min(cpus, static_cast<int>(std::ceil(quota)));
  return std::max(cpus, 1);
}

// Any number of threads may have loops open at the same time. A loop is published by making its `generation`
// odd; workers enter it by incrementing `active` under the same check, and its caller leaves only when all
// chunks are done and no worker is inside.
//
// Callers and the workers that help them are never more than the pool's threads: of n callers each runs its
// own loop, and only the rest of the threads go from loop to loop. So a thread does not wait for one that has
// no CPU, and callers need not wait for each other.
//
// Every thread has a range of the chunks and goes on to those of others when it is done with its own. So
// neighbouring chunks, and the same part of the data in loop after loop, mostly stay with one core and its
// cache.
struct ThreadPool::State {
  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  struct alignas(64) Loop {
    std::atomic<bool> taken{false};   // by a caller
    std::unique_ptr<Range[]> ranges;  // one a thread, the caller's first
    int most = 0;                     // threads that may take part
    ChunkFunction function = nullptr;
    void* context = nullptr;
    std::atomic<bool> failed{false};
    std::exception_ptr error;
    std::mutex error_mutex;
    alignas(64) std::atomic<uint32_t> generation{0};  // odd while it is open
    alignas(64) std::atomic<int> active{0};
  };

  int threads = 1;
  std::vector<std::thread> workers;
  std::vector<Loop> loops;
  std::atomic<int> used{0};  // of the loops, from the first on, those that were ever taken
  std::atomic<bool> stop{false};
  std::atomic<int> steps{0};                    // Step objects alive
  alignas(64) std::atomic<int> callers{0};      // threads in steps, or in loops outside of one
  std::atomic<int> held_back{0};                // workers that sleep until there are fewer callers
  alignas(64) std::atomic<uint32_t> opened{0};  // counts loops that workers should look for

  explicit State(int count) : threads(count), loops(static_cast<size_t>(count)) {
    for (Loop& loop : loops) loop.ranges = std::make_unique<Range[]>(static_cast<size_t>(count));
  }

  /// Whether a worker (1, 2 …) is one of those that are left to help.
  bool may_help(int worker) const {
    return worker <= threads - std::max(callers.load(std::memory_order_relaxed), 1);
  }

  void leave() {
    callers.fetch_sub(1);
    // The standard library cannot tell who waits for what, and would make a system call for any sleeper.
    if (held_back.load() > 0) callers.notify_all();
  }
  /// A caller outside of steps.
  struct Caller {
    State& state;
    explicit Caller(State& of) : state(of) { state.callers.fetch_add(1); }
    ~Caller() { state.leave(); }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
  };

  /// A free loop; null when there is none.
  Loop* take_loop() {
    for (int l = 0; l < threads; ++l) {
      if (loops[l].taken.exchange(true)) continue;
      for (int seen = used.load(); seen <= l && !used.compare_exchange_weak(seen, l + 1);) {
      }
      return &loops[l];
    }
    return nullptr;
  }

  /// Runs chunks until none is left (true) or the worker may not help any more.
  bool work(Loop& loop, int thread) {
    inside_chunk = true;
    bool may = true;
    for (int t = 0; t < threads && may; ++t) {
      Range& range = loop.ranges[(thread + t) % threads];
      while ((may = thread == 0 || may_help(thread)) &&
             range.next.load(std::memory_order_relaxed) < range.end) {
        const int64_t chunk = range.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= range.end) break;
        try {
          loop.function(loop.context, chunk);
        } catch (...) {
          std::lock_guard lock(loop.error_mutex);
          if (!loop.error) loop.error = std::current_exception();
          loop.failed = true;
        }
      }
    }
    inside_chunk = false;
    return may;
  }

  /// Helps with all loops that are open; `seen`: their generations that the worker is done with.
  void help(int worker, std::vector<uint32_t>& seen) {
    const int count = used.load();
    for (int l = 0; l < count && may_help(worker); ++l) {
      const size_t at = static_cast<size_t>((worker + l) % count);  // not all to the same one
      Loop& loop = loops[at];
      const uint32_t now = loop.generation.load();
      if (now % 2 == 0 || now == seen[at]) continue;
      const int inside = loop.active.fetch_add(1);
      // The loop may have closed between the load and the increment; only an open one may be entered.
      const bool done = loop.generation.load() != now || inside >= loop.most - 1 || work(loop, worker);
      if (loop.active.fetch_sub(1) == 1) loop.active.notify_one();
      if (done) seen[at] = now;
    }
  }

  /// Waits for another loop to be opened than those before: awake for a bounded time, then asleep.
  void await_loop(uint32_t before) {
    const auto none = [&] { return opened.load() == before && !stop; };
    if (spin(none, [&] { return steps.load(std::memory_order_relaxed) > 0 ? kSpinInStep : kSpinBetween; }))
      return;
    if (none()) opened.wait(before);
  }

  void worker(int thread) {
    MemoryNodes::here().settle(thread, threads);
    std::vector<uint32_t> seen(loops.size(), 0);
    while (!stop) {
      const uint32_t before = opened.load();
      help(thread, seen);
      if (const int there = callers.load(); thread > threads - std::max(there, 1)) {
        held_back.fetch_add(1);  // before `callers` is looked at again
        callers.wait(there);
        held_back.fetch_sub(1);
      } else {
        await_loop(before);
      }
    }
  }

  /// After a loop was closed: until the last worker has left it.
  static void await_workers(Loop& loop) {
    if (spin([&] { return loop.active.load() != 0; }, [] { return kSpinForLast; })) return;
    // The worker may have lost its CPU to somebody: let it have this one.
    for (int left = loop.active.load(); left != 0; left = loop.active.load()) loop.active.wait(left);
  }

  void run(Loop& loop, int64_t chunks, int most, ChunkFunction function, void* context) {
    for (int t = 0; t < threads; ++t) {
      loop.ranges[t].next.store(chunks * t / threads, std::memory_order_relaxed);
      loop.ranges[t].end = chunks * (t + 1) / threads;
    }
    loop.most = most;
    loop.function = function;
    loop.context = context;
    loop.generation.fetch_add(1);    // opens the loop
    if (callers.load() < threads) {  // somebody may help
      opened.fetch_add(1);
      opened.notify_all();  // a system call only when somebody sleeps
    }
    work(loop, 0);
    loop.generation.fetch_add(1);  // closes it: no worker enters from now on
    if (loop.active.load() != 0) await_workers(loop);
    std::exception_ptr error;
    if (loop.failed.exchange(false)) error = std::exchange(loop.error, nullptr);
    loop.taken.store(false);
    if (error) std::rethrow_exception(error);
  }
};

namespace {

/// The step that this thread is in: of which pool, and with how many threads at most.
struct CurrentStep {
  const void* pool = nullptr;
  int most = 0;
};
thread_local CurrentStep current_step;

}  // namespace

ThreadPool::ThreadPool(int threads)
    : state_(std::make_unique<State>(threads > 0 ? threads : available_cpus())) {
  for (int i = 1; i < state_->threads; ++i) state_->workers.emplace_back([this, i] { state_->worker(i); });
}

ThreadPool::~ThreadPool() {
  state_->stop = true;
  state_->opened.fetch_add(1);
  state_->opened.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::run(int64_t chunks, ChunkFunction function, void* context) {
  State& s = *state_;
  if (chunks <= 0) return;
  const bool in_step = current_step.pool == this;
  const int most = in_step ? current_step.most : s.threads;
  State::Loop* const loop =
      inside_chunk || chunks == 1 || s.workers.empty() || most == 1 ? nullptr : s.take_loop();
  if (!loop) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) function(context, chunk);
    return;
  }
  if (in_step) return s.run(*loop, chunks, most, function, context);
  const State::Caller caller(s);
  s.run(*loop, chunks, most, function, context);
}

ThreadPool::Step::Step(ThreadPool& pool, int most)
    : pool_(pool), outer_pool_(current_step.pool), outer_most_(current_step.most) {
  const int threads = pool_.threads();
  current_step = {&pool_, most > 0 ? std::min(most, threads) : threads};
  State& s = *pool_.state_;
  s.steps.fetch_add(1, std::memory_order_relaxed);
  if (outer_pool_ != &pool_) s.callers.fetch_add(1);
}

ThreadPool::Step::~Step() {
  current_step = {outer_pool_, outer_most_};
  State& s = *pool_.state_;
  s.steps.fetch_sub(1, std::memory_order_relaxed);
  if (outer_pool_ != &pool_) s.leave();
}

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
