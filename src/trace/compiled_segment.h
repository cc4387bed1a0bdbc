// Compiled graphs of lazy tensors, kept by structure.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <millrace/graph.h>
#include <millrace/program.h>

#include "trace/linearise.h"

namespace millrace::trace {

/// A compiled graph that takes and returns arrays.
class CompiledSegment {
 public:
  CompiledSegment(const Graph& graph, const std::string& target);
  /// The results are the caller's: the next run does not touch them. Threads run it one after the other.
  std::vector<Array> run(std::span<const Array> inputs);

 private:
  std::mutex mutex_;  // the cache gives all threads the same program
  Program program_;
};

/// The executable of operations that computes these of their values, compiled when none of the same structure
/// and target is in the cache. The cache keeps the `executable_cache_capacity` used last.
std::shared_ptr<CompiledSegment> find_compiled(const Linear& linear, std::span<const Slot> outputs,
                                               const std::string& target);

inline constexpr size_t executable_cache_capacity = 256;
/// How many executables the cache holds, and how many were ever compiled.
struct CacheCounts {
  size_t size = 0;
  int64_t compiled = 0;
};
CacheCounts executable_cache_counts();

}  // namespace millrace::trace
