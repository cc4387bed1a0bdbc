// What a loader has done and met.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::data {

/// A sample that could not be read or decoded and is replaced by the next good one of the source.
struct BadSample {
  int64_t index = 0;
  std::string name, why;
};

/// Counts of different samples.
struct Tried {
  int64_t samples = 0, bad = 0;  // asked for so far, and bad ones of these
  int64_t known_bad = 0;         // with those met while looking for a replacement
};

/// Batches filled by the loader's threads.
struct LoaderWork {
  int64_t samples = 0;
  /// Of all threads together: on a CPU; ready to run while others had the CPUs (0 where the system does not tell); all.
  double cpu_seconds = 0, queued_seconds = 0, seconds = 0;
};

}  // namespace millrace::data
