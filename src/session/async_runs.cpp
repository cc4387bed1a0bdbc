#include "session/async_runs.h"

#include <algorithm>
#include <utility>

#include "base/thread_pool.h"

namespace millrace {

AsyncRuns& AsyncRuns::all() {
  static AsyncRuns runs;
  return runs;
}

// What runs use must be destroyed after this.
AsyncRuns::AsyncRuns() { (void)ThreadPool::global(); }

AsyncRuns::~AsyncRuns() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void AsyncRuns::add(std::shared_ptr<Owner> owner, std::function<void()> run) {
  const auto most = static_cast<size_t>(ThreadPool::global().threads());
  const std::lock_guard lock(mutex_);
  waiting_.push_back({std::move(owner), std::move(run)});
  if (idle_ < static_cast<int>(waiting_.size()) && threads_.size() < most)
    threads_.emplace_back([this] { work(); });
  changed_.notify_one();
}

void AsyncRuns::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto next = std::find_if(waiting_.begin(), waiting_.end(), [](const Waiting& each) {
      return each.owner->most == 0 || each.owner->running < each.owner->most;
    });
    if (next == waiting_.end()) {
      ++idle_;
      changed_.wait(lock);
      --idle_;
      continue;
    }
    Waiting mine = std::move(*next);
    waiting_.erase(next);
    ++mine.owner->running;
    lock.unlock();
    mine.run();
    mine.run = nullptr;  // with all that it holds
    lock.lock();
    --mine.owner->running;
    changed_.notify_one();  // one of this owner's may have waited
  }
}

}  // namespace millrace
