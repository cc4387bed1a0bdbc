// What a training will take, before it begins.
#pragma once

#include <functional>
#include <string>

#include "runtime/profile.h"
#include "task/recipe.h"
#include "train/trainer.h"

namespace millrace::train {

/// A machine other than this one, by what is known of it; 0: as here.
struct DescribedMachine {
  int64_t cores = 0;
  double gflops = 0;     // fp32 peak of all cores; with `cores` alone: this machine's, by the core
  double bandwidth = 0;  // GB/s of a copy in RAM, bytes read + written
  double memory = 0;     // bytes
  bool given() const { return cores > 0 || gflops > 0 || bandwidth > 0 || memory > 0; }
};

/// Seconds, unless a name says otherwise.
struct Estimate {
  double read = 0;     // opening the data, learning from it, reading what is kept
  double compile = 0;  // as now: kernels compiled before are found on disk
  double step = 0, test = 0, epoch = 0, total = 0;
  double samples_per_second = 0;  // in steps
  double load_per_second = 0;     // samples: what the loader gives when nothing else runs
  double memory_bytes = 0;        // peak of the whole process
  double machine_bytes = 0;
  std::string binds;  // in words
  bool fits() const { return memory_bytes < machine_bytes; }
};

struct Estimates {
  Preparation prepared;
  Machine machine;
  Estimate here;
  Machine described;
  Estimate there;  // on the described machine; as here when none was described
};

/// Builds the recipe's training on a sample of its data and times it for some seconds; trains and writes
/// nothing.
///
/// `here` is what was timed: steps with their data loading, an evaluation, all scaled to the whole sets, and
/// the process's peak memory plus the samples kept in memory that are left out here. `there` takes every
/// kernel's time here times the ratio of its rooflines there and here, so that a kernel is as near the other
/// machine's limits as it is near this one's; a launch's overhead and the host's work stay, decoding scales
/// with cores. What this cannot know: other cache sizes per core, other vector units, kernels with less
/// parallel work than the other machine has cores.
Estimates estimate(const task::Recipe& recipe, const DescribedMachine& described, const Observer& observer);

}  // namespace millrace::train
