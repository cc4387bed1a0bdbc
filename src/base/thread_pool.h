// The one thread pool of the process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

namespace millrace {

/// The number of CPUs this process may use: affinity mask and cgroup quota (v1 and v2) taken into account, at
/// least 1; or what `use_cpus` said.
int available_cpus();
/// From now on available_cpus() is `cpus`, whatever the machine has; 0: as many as there are. For the
/// beginning of a program: what exists already keeps its threads.
void use_cpus(int cpus);

/// The least CPU quota of the control groups that the file `membership` (as /proc/self/cgroup) names below
/// `root`, and of all groups above them; 0 when there is none.
double cgroup_cpus(const std::string& root, const std::string& membership);

/// Runs chunked loops on a fixed set of workers. Workers spin for a bounded time between two loops of a step
/// (Step) and sleep otherwise; who waits for others gives up its CPU as soon as that takes long. Any number
/// of threads may call at the same time, each runs its own loop, and as many workers help them as leave no
/// more threads at work than the pool has. Which worker runs which chunk is not fixed; what a chunk computes
/// must not depend on it.
class ThreadPool {
 public:
  /// `threads` counts the calling thread; 0 means available_cpus().
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// While one lives, loops of this thread follow each other closely: workers stay awake between them for
  /// longer, and no others take its place. `most`: threads that work for it, itself included; 0: all.
  class Step {
   public:
    explicit Step(ThreadPool& pool, int most = 0);
    ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    ThreadPool& pool_;
    const void* outer_pool_;  // the step that this thread was in before
    int outer_most_;
  };

  /// Calls `body(chunk)` once for every chunk in [0, chunks), on the caller and the workers, and returns when
  /// all are done. The first exception thrown by a chunk is rethrown here. A call from inside a chunk runs
  /// serially on that thread; a loop of one chunk runs on the caller and wakes no worker. No allocation.
  template <typename Body>
  void parallel(int64_t chunks, Body&& body) {
    run(
        chunks,
        [](void* context, int64_t chunk) { (*static_cast<std::remove_reference_t<Body>*>(context))(chunk); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  /// The process's pool, created on first use with `set_default_threads` or available_cpus().
  static ThreadPool& global();
  /// Sets the size of the global pool, for what is compiled from now on.
  static void set_default_threads(int threads);

 private:
  using ChunkFunction = void (*)(void* context, int64_t chunk);
  void run(int64_t chunks, ChunkFunction function, void* context);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
