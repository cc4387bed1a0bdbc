// From a laid-out graph to a schedule with exact memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "passes/layout.h"
#include "target/provider.h"

namespace millrace {

/// Where a value's bytes are.
enum class StorageKind { arena, input, output, constant };

/// Memory that one or more values (views, in-place results) share.
struct Storage {
  StorageKind kind = StorageKind::arena;
  int index = -1;  // of the graph input or output, or the constant's node
  int64_t bytes = 0;
  int64_t slots_bytes = 0;  // of these, what depends on the number of threads
  int64_t offset = -1;      // in the arena
  int64_t row_bytes =
      0;  // > 0: only the rows that a chain is computing are there, for each slot a chunk of them
  int first = -1, last = -1;  // launches that write it first and read it last, to the ends of their waves
  std::string label;          // operator and location, for the memory report
};

/// One kernel call.
struct PlannedLaunch {
  int node = -1;  // of the graph
  std::unique_ptr<Kernel> kernel;
  std::string provider, declined;      // who builds it; why those before declined
  std::string problem;                 // under which its choice is recorded; empty: there was none
  std::vector<int> operands, results;  // storages
  int scratch = -1;                    // storage, or −1
  int wave = 0;    // launches of one wave are next to each other and may run at the same time
  int chain = -1;  // a wave of its own, or none
};

/// Launches that run row by row (RowKernel): a chunk of rows by the first, the same rows by the next, and so
/// on. What one leaves for another is read from the cache, and a value that nothing outside the chain reads
/// is never stored as a whole.
struct Chain {
  int64_t rows = 0;   // that each of their results has
  int64_t chunk = 0;  // rows of a chunk
  int slots = 0;      // chunks that run at the same time
  int64_t chunks() const { return (rows + chunk - 1) / chunk; }
};

/// A copy at the end of the step, for outputs that could not be computed in place; they are made in order.
struct PlannedCopy {
  int from = -1;  // storage
  StorageKind kind = StorageKind::output;
  int index = -1;  // of the output or input written; arena: of the storage
  int64_t bytes = 0;
};

struct Plan {
  LaidOutGraph source;
  std::vector<Storage> storages;
  std::vector<PlannedLaunch> launches;  // in order of waves
  std::vector<PlannedCopy> copies;
  std::vector<Chain> chains;
  std::map<std::string, std::string> choices;
  int64_t arena_bytes = 0;
  int peak_launch = -1;  // where the arena is fullest
  /// The same, and the arena's size, without what depends on the number of threads: for choices that must
  /// not.
  int fixed_peak_launch = -1;
  int64_t fixed_bytes = 0;

  /// Whether two storages are the same memory, as an input and what is written over it are.
  bool same_memory(int a, int b) const {
    const Storage &x = storages[a], &y = storages[b];
    return a == b || (x.kind == StorageKind::input && y.kind == StorageKind::input && x.index == y.index);
  }
};

struct PlanOptions {
  std::map<int, int> donations;  // output → input
  std::map<std::string, std::string> choices;
  /// Only providers whose results are exact up to the order of sums.
  bool exact = false;
  /// Problems whose kernel is the one with the least scratch memory, not the fastest.
  std::set<std::string> frugal = {};
  std::vector<char> steady_inputs = {};  // graph inputs that stay the same over many runs; empty: none
  bool chains = false;                   // whether who runs the plan can run chains
  /// For what is not among the choices, that of the recorded problem that is most like it is taken, where
  /// there is one, rather than what this machine found: it has the packed weights.
  bool nearest = false;
  /// Problems that are alike (alike.h) are one, of which one is timed.
  bool choose_alike = false;
};

/// Operands and results that a member of a chain has at most.
constexpr size_t kMostPointers = 64;

/// A launch's kernel, if it can be one of a chain; else null.
RowKernel* row_kernel(const PlannedLaunch& launch);

/// Finds chains among a plan's scheduled launches. `after[i]`: launches that must run later than launch i.
/// All members of a chain can run where the first of them stands.
void form_chains(Plan& plan, const std::vector<std::vector<int>>& after);

/// Tells the kernels of all chains how `threads` threads use them.
void prepare_chains(Plan& plan, int threads);

/// Sorts scheduled launches into waves. `after[i]`: launches (by index) that must run later than launch i,
/// all behind it; `small[i]`: its rough time in nanoseconds when it is small, else 0. A small launch joins
/// the first wave of small ones that nothing it depends on keeps it from, as long as the wave stays short;
/// others get waves of their own. Returns the wave of each launch.
std::vector<int> form_waves(const std::vector<std::vector<int>>& after, const std::vector<double>& small);

/// Chooses a provider for every node, builds the kernels (in parallel), orders the launches so that memory is
/// freed early, and places every value in the arena.
Plan make_plan(LaidOutGraph source, const Target& target, const PlanOptions& options, DeviceContext device);

/// Bytes from one slot's rows of a window to the next one's.
inline int64_t window_bytes(const Chain& chain, const Storage& storage) {
  return (chain.chunk * storage.row_bytes + 63) / 64 * 64;
}

/// Gives every arena storage with a lifetime an offset; returns the arena's size. Storages whose lifetimes
/// overlap do not overlap in memory. Offsets are multiples of 64.
int64_t place_storages(std::vector<Storage>& storages);
/// The launch, of so many, at which storages of the arena have most bytes together; -1 where there is none.
int fullest_launch(const std::vector<Storage>& storages, size_t launches);

}  // namespace millrace
