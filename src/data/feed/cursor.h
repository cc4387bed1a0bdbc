// Places in the order of samples.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace::data {

/// A place in the endless stream of batches: sample `position` of epoch `epoch` in the order that `seed`
/// gives. A cursor put back gives the same batches bit for bit, for any number of threads.
///
/// `state` is what a place needs beside these, its first two numbers the kind and the version of the others; empty at the
/// beginning, and where nothing is needed:
///   {1, 1, samples drawn of each source so far …}   mixtures (order/mixture.h)
///   {2, 1, …}                                       streams (feed/streams/stream_order.h)
///   {3, 1, streams, length and state of each …}     mixtures of streams
struct Cursor {
  uint64_t seed = 0;
  int64_t epoch = 0, position = 0;
  std::vector<int64_t> state = {};
  bool operator==(const Cursor&) const = default;
};

}  // namespace millrace::data
