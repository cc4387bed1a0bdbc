// Checkpoints written while the training goes on.
#pragma once

#include <functional>

#include "task/behind.h"
#include "train/checkpoint.h"

namespace millrace::train {

/// Copies what a checkpoint is made of, which takes as long as that memory takes to be read, and writes it
/// by a thread of its own, one at a time. The memory of the copy is kept for the next one.
class CheckpointWriter {
 public:
  /// Writes one checkpoint; called by the thread.
  using Write = std::function<void(const Checkpoint&)>;

  /// When this returns, the checkpoint's arrays may be written to again. Waits for the one before. Throws
  /// what that one failed with.
  void start(Checkpoint checkpoint, Write write);
  /// Returns when the last one is written. Throws what it failed with.
  void wait() { behind_.wait(); }
  /// Throws what the last one failed with, if it is known; waits for nothing.
  void check() { behind_.check(); }

 private:
  struct Taken {
    Checkpoint checkpoint;
    Write write;
  };
  void copy_tensors(track::NamedArrays& tensors);

  track::NamedArrays memory_;  // of the copies, by the names of the tensors
  task::Behind<Taken> behind_{[](const Taken& taken) { taken.write(taken.checkpoint); }};
};

/// The bytes of a checkpoint's tensors: what a copy of them takes.
int64_t bytes_of_tensors(const Checkpoint& checkpoint);

}  // namespace millrace::train
