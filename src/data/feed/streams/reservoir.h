// A uniform sample of a stream of unknown length.
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/random.h>

#include "data/formats/streams/stream.h"

namespace millrace::data {

/// Which items of a sequence are kept so that those kept are at any time a uniform sample of `size` of all so
/// far: Algorithm L (Li, "Reservoir-sampling algorithms of time complexity O(n(1 + log(N/n)))", TOMS 1994).
/// It draws random numbers only for items that are kept, which become ever rarer.
class Reservoir {
 public:
  Reservoir(int64_t size, uint64_t seed);
  /// The place (0 … size - 1) that the next item takes; -1 when it is not kept.
  int64_t next();

 private:
  double uniform();
  void jump();

  int64_t size_, at_ = 0, kept_at_ = 0;  // the next item's number; of the next one that is kept
  double weight_ = 1;
  RandomStream random_;
};

/// `count` samples of a stream, all equally likely, in the order of the stream; all when it has no more. It
/// is read to its end, and `count` samples are in memory.
struct StreamSampled {
  std::unique_ptr<Dataset> samples;
  int64_t total = 0;  // samples of the stream
};
StreamSampled sample_stream(Stream& stream, int64_t count, uint64_t seed);

}  // namespace millrace::data
