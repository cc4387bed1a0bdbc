// Was the data or the model the limit of a training?
#pragma once

#include <cstdint>
#include <string>

namespace millrace::train {

/// What was measured over some steps.
struct DataTimes {
  int64_t samples = 0;  // trained on
  double seconds = 0;   // of the steps, waiting included
  double waiting = 0;   // of these: for the loader's next batch
  int64_t loaded = 0;   // samples that the loader's threads got ready meanwhile
  double working = 0;   // seconds of CPU that those took, over all threads
  double queued = 0;    // seconds that its threads were ready to work, but others had the CPUs
  double loading = 0;   // seconds that they took in all

  double wait_share() const { return seconds > 0 ? waiting / seconds : 0; }
  double cpu_per_sample() const { return loaded > 0 ? working / static_cast<double>(loaded) : 0; }
};
DataTimes operator-(const DataTimes& now, const DataTimes& before);

/// What could be done about waiting.
struct DataMeans {
  int cpus = 1;
  const char* unit = "samples";  // what they are called
  bool cached = false;           // they are kept in memory as they are read
  int64_t cache_mb = 0;          // data.cache_mb that would keep all of them so, where memory allows; else 0
  std::string cheaper = {};  // how they could be stored to be read in less time; "" when that is not known
  double cheaper_cost = 1;   // CPU time of reading those, of what it is now
  bool augments = true;      // there are random changes of which some could be left out
};

/// One line, or "" when there is nothing to say (nothing measured; cached and hardly any waiting). Where more
/// than 5 % of the time went by waiting it says what was the limit: reading, when the loader's threads
/// themselves waited most of their time (neither on a CPU nor in line for one), CPUs, when they stood in line
/// for those that others had, else decoding.
std::string data_verdict(const DataTimes& times, const DataMeans& means);

}  // namespace millrace::train
