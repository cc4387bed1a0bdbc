// The segments of a compiled function: a tree of graphs with a host read between each and the next.
#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include <millrace/array.h>

#include "trace/compiled_segment.h"

namespace millrace::trace {

/// What a host reads of a tensor: whether it is zero or not, a number, or the array itself.
enum class ReadKind { truth, number, array };

/// One segment and how it ends. Values live in slots, numbered along the path from the root: the arguments
/// first, then for each segment its constants and its results.
struct Segment {
  std::string structure;                        // for recognising it when the function is recorded again
  std::shared_ptr<CompiledSegment> executable;  // null when nothing has to be computed
  std::vector<int> inputs;                      // slots
  std::vector<Array> constants;                 // captured tensors: new slots
  int operations = 0, results = 0;              // results: further new slots

  bool returns = false;
  std::vector<int> returned;  // slots
  ReadKind kind = ReadKind::truth;
  int read = -1;  // the slot that the host reads
  std::source_location where;

  /// What follows, by the value read; the one used last first.
  struct Next {
    std::string value;
    std::unique_ptr<Segment> segment;
  };
  std::vector<Next> next;

  /// The continuation for a value, moved to the front; null when it was not recorded yet.
  Segment* find(const std::string& value);
  /// Adds a continuation; drops the one used least recently when there are more than `capacity`.
  Segment* add(const std::string& value, std::unique_ptr<Segment> segment, size_t capacity);
};

/// Runs a segment: appends its constants and results to `slots`.
void run(const Segment& segment, std::vector<Array>& slots);

/// What a read gives, as text to compare: "true", "0.25", or an array's bytes.
std::string value_read(const Array& value, ReadKind kind);

}  // namespace millrace::trace
