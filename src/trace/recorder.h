// Recording a function into segments.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trace/linearise.h"
#include "trace/segment.h"

namespace millrace::trace {

/// Answers the host reads of one run of a function, and adds the segments between them to the tree. Reads on
/// a path that is known already are answered from the slots of the replay that came before.
class Recorder {
 public:
  /// `root`: the tree (empty at first); `path`: the known segments from the root on that this run has already
  /// computed into `slots` (arguments first).
  Recorder(std::unique_ptr<Segment>& root, std::vector<Segment*> path, std::vector<Array> slots,
           size_t arguments, std::string target, size_t capacity);
  ~Recorder();
  Recorder(const Recorder&) = delete;

  /// The arguments to call the function with.
  const std::vector<Tensor>& arguments() const { return arguments_; }
  /// Makes `tensor` (an operation or a value) a value and notes the read.
  void read(const Tensor& tensor, ReadKind kind, const std::source_location& where);
  /// Ends the recording with what the function returned; the results' values.
  std::vector<Array> finish(const std::vector<Tensor>& results);

 private:
  struct Piece {
    std::unique_ptr<Segment> segment;
    std::vector<Slot> computed;
  };
  /// The segment that computes the nodes (all their results) from what is known; constants get slots.
  Piece make(const Linear& linear, const std::vector<Slot>& computed);
  /// Makes a piece known: compares it with the path, or runs it and adds it to the tree.
  void enter(Piece piece, const Linear& linear);
  /// The slot of a leaf or computed tensor; a captured constant becomes one of the segment's.
  int slot_of(const Tensor& tensor, Segment& segment);

  std::unique_ptr<Segment>& root_;
  std::vector<Segment*> path_;
  std::vector<Array> slots_;
  std::string target_;
  size_t capacity_;
  std::vector<Tensor> arguments_;
  std::vector<Tensor> kept_;  // keeps the addresses of known_ from being used again
  std::map<Slot, int> known_;
  int next_slot_;     // slots that the function has come to; slots_ may be ahead on a known path
  size_t reads_ = 0;  // segments entered
  Segment* last_ = nullptr;
  std::string answer_;  // what the host read after last_
  Recorder* outer_;
};

/// The recorder of this thread; null outside recordings.
Recorder*& current_recorder();

}  // namespace millrace::trace
