// One stream of those that a loader draws from, with what is read and decoded of it ahead. Part of the loader of streams.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "data/augment/augment.h"
#include "data/feed/loader_options.h"
#include "data/feed/streams/stream_pictures.h"
#include "data/feed/streams/stream_reader.h"

namespace millrace::data {

/// A sample on its way from the stream to the batch.
struct StreamItem {
  enum class What : uint8_t { empty, drawn, decoding, ready } what = What::empty;
  /// Of this rank; others' are drawn, but not decoded.
  bool mine = true;
  StreamReader::Drawn drawn;
  int64_t stored = 0;  // bytes that it is counted with until it is decoded (StreamMemory)
  StreamedPicture picture;
  std::vector<uint8_t> planes;
  std::string why;  // it is bad
  std::exception_ptr error;
};

/// The reading thread puts items into the ring, in the order drawn; threads decode them there; the consumer takes them. What the
/// stream gives does not depend on how it is mixed with others, so that other shares change only which stream is taken from.
struct StreamIntake {
  StreamIntake(std::string given_name, std::unique_ptr<Stream> stream,
               const std::vector<std::string>& classes, const LoaderOptions& options,
               const Augmenter& augmenter, size_t ring_size)
      : name(std::move(given_name)),
        reader(std::move(stream), stream_buffer(options.order), options.seed),
        pictures(reader.stream(), name, classes, options, augmenter),
        order(reader.order()),
        ring(ring_size) {}

  std::string name;  // "" of the only one
  uint64_t seed = 0;
  StreamReader reader;  // the reading thread's, while there is one
  StreamPictures pictures;

  // The consumer's.
  StreamOrder order;                // after the samples of the batches given out
  std::deque<StreamItem> returned;  // taken, but not used: they come again before those of the ring
  int64_t tried = 0, in_pass = 0;   // samples asked for, and of the pass so far
  bool good_in_pass = true;         // there was one, or it cannot be said

  // The loader's mutex guards these, but not the content of items that are being drawn or decoded.
  std::vector<StreamItem> ring;
  uint64_t drawn = 0, claimed = 0, taken = 0;
  std::condition_variable room;

  StreamItem& item(uint64_t number) { return ring[number % ring.size()]; }
  /// Forgets what was read ahead; without threads only.
  void clear() {
    for (StreamItem& each : ring) each = {};
    drawn = claimed = taken = 0;
    returned.clear();
    in_pass = 0;
    good_in_pass = true;
  }
};

}  // namespace millrace::data
