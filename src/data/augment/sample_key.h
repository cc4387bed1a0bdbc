// The name of a sample, to whatever changes it at random.
#pragma once

#include <cstdint>

namespace millrace::data {

/// Which sample of a training is changed.
struct SampleKey {
  uint64_t seed = 0;
  int64_t epoch = 0, position = 0;  // position: of the sample in its epoch
  int64_t index = 0;                // of the sample in its source
};

}  // namespace millrace::data
