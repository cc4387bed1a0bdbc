// One stream of those that a feed draws from, with what is read and made of it ahead. Part of the feed of
// streams.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "data/feed/streams/stream_reader.h"
#include "data/feed/streams/stream_samples.h"

namespace millrace::data {

/// A sample on its way from the stream to the batch.
struct LineItem {
  enum class What : uint8_t { empty, drawn, working, ready } what = What::empty;
  /// Of this rank; others' are drawn, but nothing is made of them.
  bool mine = true;
  StreamReader::Drawn drawn;
  int64_t stored = 0;  // bytes that it is counted with until its row is made (StreamMemory)
  std::string name;
  float weight = 1;
  std::vector<std::byte> row;  // StreamRows
  std::string why;             // it is bad
  std::exception_ptr error;
};

/// The reading thread puts items into the ring, in the order drawn; threads make their rows there; the
/// consumer takes them. What the stream gives does not depend on how it is mixed with others, so that other
/// shares change only which stream is taken from.
struct StreamLine {
  /// `name`: "" of the only one.
  StreamLine(const std::string& name, std::unique_ptr<Stream> stream, const std::string& weight,
             int64_t buffer, uint64_t first_seed, size_t ring_size)
      : reader(std::move(stream), buffer, first_seed),
        opener(reader.stream(), name, weight),
        order(reader.order()),
        ring(ring_size) {}

  uint64_t seed = 0;
  StreamReader reader;  // the reading thread's, while there is one
  RecordOpener opener;

  // The consumer's.
  StreamOrder order;               // after the samples of the batches given out
  std::deque<LineItem> returned;   // taken, but not used: they come again before those of the ring
  int64_t tried = 0, in_pass = 0;  // samples asked for, and of the pass so far
  bool good_in_pass = true;        // there was one, or it cannot be said

  // The feed's mutex guards these, but not the content of items that are being drawn or worked on.
  std::vector<LineItem> ring;
  uint64_t drawn = 0, claimed = 0, taken = 0;
  std::condition_variable room;

  LineItem& item(uint64_t number) { return ring[number % ring.size()]; }
  /// Forgets what was read ahead; without threads only.
  void clear() {
    for (LineItem& each : ring) each = {};
    drawn = claimed = taken = 0;
    returned.clear();
    in_pass = 0;
    good_in_pass = true;
  }
};

}  // namespace millrace::data
