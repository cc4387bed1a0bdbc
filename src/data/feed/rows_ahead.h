// Samples on servers, fetched in the order in which a feed is going to read them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <millrace/dataset.h>

#include "data/io/read_ahead.h"

namespace millrace::data {

/// The cache that samples of a data set are read through; null where they are here.
RemoteCache* remote_cache_of(const Dataset& samples);

class RowsAhead;
/// The plan of reading the first `count` samples in order, each a batch of its own; null where they are here.
/// The data set must stay.
std::unique_ptr<RowsAhead> ahead_of(const Dataset& samples, int64_t count);

/// Thread-safe, but for start().
class RowsAhead {
 public:
  /// Gives the samples of the next batch; false at the end.
  using NextBatch = std::function<bool(std::vector<int64_t>& samples)>;

  /// The data set must stay.
  RowsAhead(const Dataset& samples, RemoteCache& cache) : samples_(samples), ahead_(cache) {}

  /// Forgets what was told. `next` is called from now on for one batch after the other.
  void start(NextBatch next);
  /// Batch `number` from start() on is going to be read, so that what follows may be fetched.
  void reach(uint64_t number);
  /// It has been read. Each is reached and done once.
  void done(uint64_t number);

 private:
  void tell_window();

  const Dataset& samples_;
  std::mutex mutex_;  // guards all below
  ReadAhead ahead_;
  NextBatch next_;
  struct Told {
    uint64_t begin = 0, end = 0;  // batches
    uint64_t left = 0;            // of these that are not done
  };
  std::deque<Told> windows_;
};

}  // namespace millrace::data
