// Checkpoints written while the training goes on.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "train/checkpoint.h"

namespace millrace::train {

/// Copies what a checkpoint is made of, which takes as long as that memory takes to be read, and writes it
/// by a thread of its own, one at a time. The memory of the copy is kept for the next one.
class CheckpointWriter {
 public:
  /// Writes one checkpoint; called by the thread.
  using Write = std::function<void(const Checkpoint&)>;

  CheckpointWriter();
  /// Waits; what goes wrong then is lost, so who must know calls wait() before.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// When this returns, the checkpoint's arrays may be written to again. Waits for the one before. Throws
  /// what that one failed with.
  void start(Checkpoint checkpoint, Write write);
  /// Returns when the last one is written. Throws what it failed with.
  void wait();
  /// Throws what the last one failed with, if it is known; waits for nothing.
  void check();

 private:
  void work();
  void copy_tensors(track::NamedArrays& tensors);
  void rethrow();

  std::mutex mutex_;
  std::condition_variable changed_;
  Checkpoint taken_;
  track::NamedArrays memory_;  // of the copies, by the names of the tensors
  Write write_;                // while there is something to write
  bool over_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

/// The bytes of a checkpoint's tensors: what a copy of them takes.
int64_t bytes_of_tensors(const Checkpoint& checkpoint);

}  // namespace millrace::train
