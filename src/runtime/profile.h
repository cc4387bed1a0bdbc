// Where the time of a step goes, and how far each kernel is from what the machine could do.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <millrace/program.h>

#include "runtime/machine.h"

namespace millrace {

/// The least time a launch could take: its arithmetic at the machine's peak, its bytes at the rate of the
/// memory they come from, whichever is longer. Seconds.
struct Roof {
  double compute = 0, memory = 0;
  double seconds() const { return std::max(compute, memory); }
  bool memory_bound() const { return memory >= compute; }
};
Roof roof_of(const LaunchInfo& launch, const Machine& machine);

/// When the parts of a step on the host ended, in nanoseconds of the steady clock.
struct StepMarks {
  int64_t begin = 0;
  int64_t data = 0;    // the batch was there
  int64_t inputs = 0;  // it was copied into the program's inputs
  int64_t ran = 0;     // the program returned
  int64_t end = 0;     // loss checked, metrics logged
};

struct LaunchProfile {
  LaunchInfo info;
  double seconds = 0;  // mean of the runs that count
  Roof roof;
  double share() const { return seconds > 0 ? roof.seconds() / seconds : 0; }
  /// FLOP per byte.
  double intensity() const { return info.bytes() > 0 ? info.flops / info.bytes() : 0; }
};

/// Launches that have something in common.
struct LaunchGroup {
  std::string name;
  int launches = 0;
  double seconds = 0, flops = 0, bytes = 0;
  double roof = 0, compute_roof = 0, memory_roof = 0;  // sums of the launches' roofs
  double phase_seconds[3] = {0, 0, 0};                 // by Phase
};

/// One thing that could make the step faster.
struct Advice {
  double seconds = 0;  // that the step could lose at most
  std::string text;
};

struct Profile {
  Machine machine;
  std::vector<LaunchProfile> launches;  // in order
  int runs = 0, counted = 0;            // measured, and the faster half, over which all means are
  double seconds = 0;                   // of a step
  double data = 0, host = 0;            // waiting for a batch; everything else outside of kernels
  double phases[3] = {0, 0, 0};         // kernels, by Phase
  /// Counts of the CPU a step, over all threads: "cycles", "instructions", "cache misses"; empty where there
  /// are none.
  std::vector<std::pair<std::string, double>> counters;
  StepMarks typical_marks;             // of the median step of those counted
  std::vector<int64_t> typical_times;  // its launches: Program::run_times()

  double roof() const;  // seconds of all launches at their roofs
  double flops() const;
  double bytes() const;
};

/// `marks`: one for each run of the program, in order; fewer runs or none: those runs begin and end with the
/// program.
Profile make_profile(std::vector<LaunchInfo> launches, const std::vector<std::vector<int64_t>>& runs,
                     std::span<const StepMarks> marks, const Machine& machine);

/// Whether a launch is a fused group: told by its name, as it is shown.
bool is_fused(const LaunchInfo& launch);
/// What kind of work a launch is: "conv2d", "matmul", "fused element-wise", "fused reduction", "data
/// movement" …
std::string kind_of(const LaunchInfo& launch);
/// The layer, cut to its first `depth` components (0: all); a parameter's update counts as its layer's.
std::string layer_of(const LaunchInfo& launch, int depth);
/// Groups by a name, those with most time first.
std::vector<LaunchGroup> group_launches(std::span<const LaunchProfile> launches,
                                        const std::function<std::string(const LaunchInfo&)>& name);
/// What would help most, the largest first: groups far above their roofs, waiting, overheads.
std::vector<Advice> advise(const Profile& profile);

}  // namespace millrace
