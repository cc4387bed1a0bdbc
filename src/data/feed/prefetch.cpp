#include "data/feed/prefetch.h"

#include <chrono>
#include <system_error>

#include "base/format.h"
#include "base/mapped_file.h"
#include "base/memory_nodes.h"

namespace millrace::data {

Prefetch::Prefetch(Source& source, int threads, size_t slots)
    : source_(source), count_(threads), slots_(slots) {}

void Prefetch::start() {
  claimed_ = 0;
  taken_ = 0;
  filled_ = 0;
  for (Slot& slot : slots_) {
    slot.ready = false;
    slot.error = nullptr;
  }
  stop_ = false;
  appetite_ = std::make_unique<Appetite>(count_);
  try {
    for (int i = 0; i < count_; ++i) threads_.emplace_back([this, i] { run(i); });
  } catch (const std::system_error& error) {
    halt();
    fail<IoError>(
        "the loader cannot start its threads: {}; raise the limit of processes or set fewer threads",
        error.what());
  }
}

void Prefetch::halt() {
  stop_ = true;
  for (std::atomic<uint32_t>* sleep : {&bell_, &more_}) {
    ++*sleep;
    sleep->notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

bool Prefetch::claim(size_t& slot) {
  const std::lock_guard lock(mutex_);
  // `taken_` - 1 is the batch that the consumer holds.
  if (claimed_ + 1 >= taken_.load(std::memory_order_acquire) + slots_.size()) return false;
  slot = claimed_ % slots_.size();
  source_.claim(slot);
  ++claimed_;
  return true;
}

void Prefetch::run(int number) {
  MemoryNodes::here().settle_in_turn(number);  // so is its batch's memory, which it writes first
  std::unique_ptr<Source::Worker> worker;
  const ThreadTimes times;
  while (true) {
    // Looked at before what they tell of: so nothing that happens in between is slept through.
    const uint32_t rung = bell_, wanted = more_;
    if (stop_) return;
    if (number >= appetite_->active()) {
      bell_.notify_one();  // it may have been this one that was woken
      more_.wait(wanted);
      continue;
    }
    size_t free = 0;
    if (!claim(free)) {
      bell_.wait(rung);
      continue;
    }
    Slot& slot = slots_[free];
    std::exception_ptr error;
    try {
      const ThreadTimes::Times begin = times.now();
      if (!worker) worker = source_.worker();
      const int64_t samples = source_.fill(free, *worker);
      require_mapped_files();  // or zeros could have been taken for data
      work_.add(samples, begin, times.now());
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    slot.error = error;
    ++filled_;
    slot.ready.store(true, std::memory_order_release);
    done_.notify_one();
  }
}

size_t Prefetch::next() {
  const uint64_t number = taken_.load(std::memory_order_relaxed);
  const size_t place = number % slots_.size();
  Slot& slot = slots_[place];
  const bool waited = !slot.ready.load(std::memory_order_acquire);
  if (waited) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return slot.ready.load(std::memory_order_acquire); });
  }
  if (slot.error) std::rethrow_exception(slot.error);  // and again at the next call
  const bool full = filled_-- + 1 >= slots_.size();
  if (number > 0) slots_[(number - 1) % slots_.size()].ready.store(false, std::memory_order_relaxed);
  taken_.store(number + 1, std::memory_order_release);
  ++bell_;
  bell_.notify_one();
  if (appetite_->handed_over(waited, full)) {
    ++more_;
    more_.notify_all();
  }
  return place;
}

bool Prefetch::ready(double seconds) {
  const Slot& slot = slots_[taken_ % slots_.size()];
  const auto is_ready = [&] { return slot.ready.load(std::memory_order_acquire); };
  if (is_ready()) return true;
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, std::chrono::duration<double>(seconds), is_ready);
}

}  // namespace millrace::data
