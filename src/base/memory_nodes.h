// Memory nodes (NUMA) of the machine, by hwloc: which threads belong to which, and what to warn of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace millrace {

/// The nodes that this process may use. Where there is one, as on most machines, hwloc is not even asked.
class MemoryNodes {
 public:
  /// This machine's.
  static const MemoryNodes& here();
  /// Those of a machine that hwloc describes ("numa:2 core:4 pu:1"); for tests, settle() does nothing there.
  explicit MemoryNodes(const std::string& synthetic);
  ~MemoryNodes();

  int count() const;
  /// The node of a thread when so many share the machine: neighbours share a node, nodes get threads as they
  /// have CPUs.
  int node_of(int thread, int threads) const;
  /// The node of a thread among others of which only the first few may be at work: nodes in turn, as they
  /// have CPUs.
  int node_in_turn(int thread) const;
  /// Prefers the CPUs and the memory of its node for the calling thread. Memory is then of the node whose
  /// thread writes it first; when the node has none left, another's is taken. Does nothing where there is one
  /// node.
  void settle(int thread, int threads) const;
  /// The same by node_in_turn().
  void settle_in_turn(int thread) const;

 private:
  struct State;
  MemoryNodes();
  void settle_on(int node) const;
  std::unique_ptr<State> state_;
};

/// The memory of the machine, in bytes, whoever uses it now.
int64_t machine_memory();

/// What is free of it for this process, as the kernel and its control groups say; −1 where they do not.
int64_t free_memory();

/// What the memory limits of the control groups (version 2) leave that the file `membership` (as
/// /proc/self/cgroup) names below `root`, and of all groups above them; −1 where there is none. Pages of
/// files are not counted as used: they make way, and what reads a data set soon fills its group with them.
int64_t cgroup_memory_left(const std::string& root, const std::string& membership);

/// What to know before `bytes` are taken, "" when nothing: that so much is not free (the machine would swap,
/// or end the process), or that the kernel would rather swap than use another node's memory.
std::string memory_warning(int64_t bytes);

/// The same from the contents of /proc/meminfo, /proc/sys/vm/zone_reclaim_mode and the memory that cgroups
/// leave (−1 when they set no limit).
std::string memory_warning(int64_t bytes, const std::string& meminfo, const std::string& reclaim_mode,
                           int nodes, int64_t cgroup_left);

}  // namespace millrace
