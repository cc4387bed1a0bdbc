// Runs that nobody waits for yet.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace {

/// Threads of the library that run what is handed to them, in order, as many at the same time as the pool has
/// threads. They sleep when there is nothing to do.
class AsyncRuns {
 public:
  /// The process's own.
  static AsyncRuns& all();
  ~AsyncRuns();
  AsyncRuns(const AsyncRuns&) = delete;
  AsyncRuns& operator=(const AsyncRuns&) = delete;

  /// Whose runs are made at the same time, at most so many; 0: no such limit.
  struct Owner {
    int most = 0;
    int running = 0;
  };
  void add(std::shared_ptr<Owner> owner, std::function<void()> run);

 private:
  AsyncRuns();
  struct Waiting {
    std::shared_ptr<Owner> owner;
    std::function<void()> run;
  };
  void work();

  std::mutex mutex_;  // of all that follows, and of owners
  std::condition_variable changed_;
  std::list<Waiting> waiting_;
  std::vector<std::thread> threads_;
  int idle_ = 0;  // of the threads
  bool stop_ = false;
};

}  // namespace millrace
