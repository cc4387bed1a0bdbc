// What a stream's samples take in memory, and what they may. Part of the loader of streams.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "data/formats/streams/stream.h"

namespace millrace::data {

/// Samples that are kept (the shuffle buffer, and what was looked at before it), the one that is being read,
/// and those drawn that are ahead of the consumer. What is ahead waits for room, as it goes away by itself;
/// what is kept is a function of the order and cannot be less: when it does not fit, with one sample drawn,
/// that is certain whatever the threads have done, and said with InputError before the memory is taken.
/// Thread-safe. Without a limit it counts nothing.
class StreamMemory {
 public:
  /// `path` and `buffer` (samples that are kept at the most) are for messages.
  StreamMemory(std::string path, int64_t buffer) : path_(std::move(path)), buffer_(buffer) {}

  /// At the most `bytes` (0: any) from now on; each sample drawn takes `decoded` more. Not while threads
  /// work. InputError when what is kept already takes more.
  void limit(int64_t bytes, int64_t decoded);
  bool limited() const { return limit_ > 0; }
  /// So many samples are going to be kept, or as many as the buffer holds where that is more: for messages.
  /// Of the reading thread.
  void expect(int64_t samples) { expected_ = std::max(samples, buffer_); }

  /// Bytes that a record takes while it is kept, with its place in the buffer and in the order's states.
  static int64_t of(const StreamRecord& record);

  /// A record of so many bytes up to now is being read: waits for room.
  void reading(uint64_t bytes);
  /// It was read and is kept; or is kept no more.
  void keep(const StreamRecord& record);
  void drop(int64_t bytes);
  /// Of those kept, one of so many bytes is drawn and will be decoded: waits for room.
  void draw(int64_t bytes);
  /// A drawn sample gives up its stored bytes when it is decoded, and its decoded ones when it is taken.
  void decoded(int64_t bytes);
  void taken();

  /// Lets what waits throw StreamStopped.
  void stop();
  /// After stop(), when no thread uses it: nothing is ahead, and those kept are so many, of so many bytes.
  void begin(int64_t samples, int64_t bytes);

  /// Bytes at the most so far.
  int64_t most() const;

 private:
  void wait_for(std::unique_lock<std::mutex>& lock, int64_t more);
  void counted();
  [[noreturn]] void refuse(int64_t more) const;

  const std::string path_;
  const int64_t buffer_;
  int64_t expected_ = buffer_, limit_ = 0, decoded_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  int64_t samples_ = 0, kept_ = 0, reading_ = 0, ahead_ = 0, most_ = 0;
  bool stopped_ = false;
};

}  // namespace millrace::data
