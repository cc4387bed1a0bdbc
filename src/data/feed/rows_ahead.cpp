#include "data/feed/rows_ahead.h"

#include <utility>

namespace millrace::data {

RemoteCache* remote_cache_of(const Dataset& samples) {
  // Of a mixture one source may be here and another far away.
  constexpr int64_t probes = 8;
  const ReadAhead::Window probe;
  const int64_t count = samples.count();
  for (int64_t i = 0; i < probes && i < count && !probe.cache(); ++i) samples.will_read(i * count / probes);
  return probe.cache();
}

std::unique_ptr<RowsAhead> ahead_of(const Dataset& samples, int64_t count) {
  RemoteCache* const cache = remote_cache_of(samples);
  if (!cache) return nullptr;
  auto ahead = std::make_unique<RowsAhead>(samples, *cache);
  ahead->start([next = int64_t{0}, count](std::vector<int64_t>& batch) mutable {
    if (next == count) return false;
    batch.push_back(next++);
    return true;
  });
  return ahead;
}

void RowsAhead::start(NextBatch next) {
  const std::lock_guard lock(mutex_);
  ahead_.clear();
  next_ = std::move(next);
  windows_.clear();
}

void RowsAhead::reach(uint64_t number) {
  const std::lock_guard lock(mutex_);
  while (next_ && (windows_.empty() || number >= windows_.back().begin)) tell_window();
}

void RowsAhead::done(uint64_t number) {
  const std::lock_guard lock(mutex_);
  for (Told& window : windows_)
    if (number >= window.begin && number < window.end) --window.left;
  // The last stays: it says where the next begins.
  for (; windows_.size() > 1 && windows_.front().left == 0; windows_.pop_front()) ahead_.end();
}

void RowsAhead::tell_window() {
  // Of very small samples fewer, as each of them is remembered.
  constexpr size_t most_parts = 1 << 16;
  const uint64_t bytes = ahead_.window_bytes();
  const ReadAhead::Window window;
  Told told;
  told.begin = told.end = windows_.empty() ? 0 : windows_.back().end;
  std::vector<int64_t> samples;
  do {
    samples.clear();
    if (!next_(samples)) {
      next_ = nullptr;
      break;
    }
    for (const int64_t sample : samples) samples_.will_read(sample);
    ++told.end;
    // Nothing of these may be remote: a window ends all the same.
  } while (window.bytes() < bytes && window.parts() < most_parts && told.end - told.begin < most_parts);
  told.left = told.end - told.begin;
  windows_.push_back(told);
  ahead_.begin(window);
}

}  // namespace millrace::data
