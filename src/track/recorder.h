// Writing without holding up the training: records go to a thread of their own, which writes them to all
// logs.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "track/record.h"

namespace millrace::track {

class Recorder {
 public:
  /// So many records may wait; add() waits for room beyond that, which a disk that stalls for long leads to:
  /// nothing is dropped.
  static constexpr size_t most_waiting = size_t{1} << 16;

  explicit Recorder(std::vector<std::unique_ptr<Sink>> sinks);
  /// Writes what is left; what goes wrong then is lost, so who must know calls flush() before.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Takes less than a microsecond. Throws what an earlier record failed with (IoError: the disk is full).
  void add(Record record);
  /// Returns when all records that were added before are in their files, whoever adds more meanwhile. Throws
  /// what one failed with.
  void flush();
  /// flush(), then Sink::finish() of each.
  void finish(const std::string& state);

 private:
  void work();
  void rethrow();

  std::vector<std::unique_ptr<Sink>> sinks_;
  std::mutex mutex_;
  std::condition_variable arrived_, written_;
  std::vector<Record> waiting_;
  uint64_t added_ = 0, done_ = 0;  // records in all
  bool asleep_ = false, hurry_ = false, over_ = false;
  std::exception_ptr failure_;
  std::thread writer_;
};

}  // namespace millrace::track
