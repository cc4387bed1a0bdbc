#include "data/feed/streams/stream_memory.h"

#include <algorithm>

#include "base/format.h"
#include "base/size_text.h"
#include "data/feed/streams/stream_order.h"

namespace millrace::data {

int64_t StreamMemory::of(const StreamRecord& record) {
  // Twice, as lists of them grow by doubling: the record in the buffer, its place in the states of reader and
  // consumer. The last is what an allocation takes besides.
  constexpr size_t others = 2 * (sizeof(StreamRecord) + 3 * sizeof(BufferedSample)) + 64;
  return static_cast<int64_t>(record.bytes.size() + record.fault.size() + others);
}

void StreamMemory::limit(int64_t bytes, int64_t decoded) {
  limit_ = bytes;
  decoded_ = decoded;
  if (limited() && kept_ + decoded_ > limit_) refuse(decoded_);
}

/// What a limit has to grow by, and how many samples would do.
void StreamMemory::refuse(int64_t more) const {
  const int64_t one = kept_ / std::max<int64_t>(samples_, 1);
  const int64_t needed = std::max(kept_, one * expected_) + more;
  std::string fix = fmt::format("raise data.memory so that it leaves {}", memory_text(needed));
  // A tenth less, as samples differ.
  const int64_t fit = one > 0 ? (limit_ - more) / one * 9 / 10 : 0;
  if (expected_ == buffer_ && fit >= 1 && fit < buffer_)
    fix += fmt::format(", or set data.order = \"shuffle-buffer {}\"", fit);
  const std::string kept =
      samples_ == 0 ? ""
                    : fmt::format("{} of the {} {} take {}, and ", std::min(samples_, expected_), expected_,
                                  expected_ == buffer_ ? "in the shuffle buffer" : "that are looked at first",
                                  memory_text(kept_));
  fail<InputError>(
      "{}: data.memory leaves {} for samples of this stream, which need about {}: {}one that is read or "
      "decoded "
      "takes {}; {}",
      path_, memory_text(limit_), memory_text(needed), kept, memory_text(more), fix);
}

void StreamMemory::counted() { most_ = std::max(most_, kept_ + reading_ + ahead_); }

void StreamMemory::wait_for(std::unique_lock<std::mutex>& lock, int64_t more) {
  room_.wait(lock, [&] { return stopped_ || ahead_ == 0 || kept_ + ahead_ + more <= limit_; });
  if (stopped_) throw StreamStopped();
  if (kept_ + ahead_ + more > limit_) refuse(more);
}

void StreamMemory::reading(uint64_t bytes) {
  if (!limited()) return;
  std::unique_lock lock(mutex_);
  reading_ = 0;
  wait_for(lock, static_cast<int64_t>(bytes));
  reading_ = static_cast<int64_t>(bytes);
  counted();
}

void StreamMemory::keep(const StreamRecord& record) {
  if (!limited()) return;
  const int64_t bytes = of(record);
  std::unique_lock lock(mutex_);
  reading_ = 0;
  wait_for(lock, bytes);
  kept_ += bytes;
  ++samples_;
  counted();
}

void StreamMemory::drop(int64_t bytes) {
  if (!limited()) return;
  const std::lock_guard lock(mutex_);
  kept_ -= bytes;
  --samples_;
}

void StreamMemory::draw(int64_t bytes) {
  if (!limited()) return;
  std::unique_lock lock(mutex_);
  wait_for(lock, decoded_);
  kept_ -= bytes;
  --samples_;
  ahead_ += bytes + decoded_;
  counted();
}

void StreamMemory::decoded(int64_t bytes) {
  if (!limited()) return;
  const std::lock_guard lock(mutex_);
  ahead_ -= bytes;
  room_.notify_all();
}

void StreamMemory::taken() {
  if (!limited()) return;
  const std::lock_guard lock(mutex_);
  ahead_ -= decoded_;
  room_.notify_all();
}

void StreamMemory::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  room_.notify_all();
}

void StreamMemory::begin(int64_t samples, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  samples_ = samples;
  kept_ = bytes;
  reading_ = ahead_ = 0;
  stopped_ = false;
}

int64_t StreamMemory::most() const {
  const std::lock_guard lock(mutex_);
  return most_;
}

}  // namespace millrace::data
