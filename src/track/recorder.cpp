#include "track/recorder.h"

#include <chrono>
#include <utility>

namespace millrace::track {

namespace {

/// Between two rounds of writing: records that come meanwhile are written together, and who adds them does
/// not have to wake anybody.
constexpr std::chrono::milliseconds rest{20};

}  // namespace

Recorder::Recorder(std::vector<std::unique_ptr<Sink>> sinks)
    : sinks_(std::move(sinks)), writer_([this] { work(); }) {}

Recorder::~Recorder() {
  {
    const std::lock_guard lock(mutex_);
    over_ = hurry_ = true;
  }
  arrived_.notify_all();
  writer_.join();
}

void Recorder::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Recorder::add(Record record) {
  bool wake = false;
  {
    std::unique_lock lock(mutex_);
    if (waiting_.size() >= most_waiting) {
      hurry_ = true;
      arrived_.notify_all();
      written_.wait(lock, [&] { return waiting_.size() < most_waiting; });
    }
    rethrow();
    waiting_.push_back(std::move(record));
    ++added_;
    wake = std::exchange(asleep_, false);
  }
  if (wake) arrived_.notify_one();
}

void Recorder::flush() {
  std::unique_lock lock(mutex_);
  const uint64_t wanted = added_;
  hurry_ = true;
  arrived_.notify_all();
  written_.wait(lock, [&] { return done_ >= wanted; });
  rethrow();
}

void Recorder::finish(const std::string& state) {
  flush();
  // The writer is idle, and nobody adds.
  for (const auto& sink : sinks_) sink->finish(state);
}

void Recorder::work() {
  std::vector<Record> taken;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (waiting_.empty()) {
      hurry_ = false;
      asleep_ = true;
      arrived_.wait(lock, [&] { return !waiting_.empty() || over_; });
      asleep_ = false;
      if (waiting_.empty()) return;
    }
    taken.swap(waiting_);
    lock.unlock();
    std::exception_ptr failed;
    std::vector<std::vector<Exhibit>> shown(taken.size());
    for (size_t i = 0; i < taken.size(); ++i) {
      try {
        if (taken[i].exhibits) shown[i] = taken[i].exhibits();
      } catch (...) {
        failed = std::current_exception();
      }
    }
    for (const auto& sink : sinks_) {
      try {
        for (size_t i = 0; i < taken.size(); ++i) {
          for (const Exhibit& exhibit : shown[i]) sink->show(exhibit, taken[i].step, taken[i].time);
          if (!taken[i].exhibits) sink->write(taken[i]);
        }
        sink->flush();
      } catch (...) {
        if (!failed) failed = std::current_exception();
      }
    }
    const uint64_t count = taken.size();
    taken.clear();
    lock.lock();
    done_ += count;
    if (failed && !failure_) failure_ = failed;
    written_.notify_all();
    if (!over_) arrived_.wait_for(lock, rest, [&] { return hurry_ || over_; });
  }
}

}  // namespace millrace::track
