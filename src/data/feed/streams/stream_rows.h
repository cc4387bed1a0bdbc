// What the parts of a feed make of a stream's samples: the bytes of a row, and the arrays of a batch. Part of
// the feed of streams.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/feed/aligned_bytes.h"
#include "data/feed/part.h"

namespace millrace::data {

/// Rows lie by themselves, ahead of the batch: the rows of all arrays one behind the other.
class StreamRows {
 public:
  /// InputError: several parts that mix. InternalError: an array whose rows differ in size.
  StreamRows(std::vector<NamedPart> parts, bool weighted);

  /// As Feed has them.
  const std::vector<Field>& fields() const { return fields_; }
  /// Of a row by itself; of a row in all arrays of a batch.
  size_t bytes() const { return bytes_; }
  size_t batch_bytes() const;
  /// Of the parts' own.
  int64_t memory() const;

  /// What a thread works with.
  struct Worker {
    std::vector<std::unique_ptr<Part::Scratch>> scratch;
    std::vector<std::vector<std::byte>> stored;  // of each part
    std::vector<std::byte*> places;
  };
  Worker worker() const;

  /// Makes the row of a sample; "" or why it is bad. InputError as of Part::read().
  std::string make(const Dataset& sample, const SampleKey& key, Worker& worker, std::byte* row) const;

  /// The arrays of a batch.
  using Arrays = std::vector<AlignedBytes>;
  Arrays arrays(int64_t batch) const;
  /// Puts a row there, and takes it from there.
  void put(const std::byte* row, Arrays& arrays, int64_t place, float weight) const;
  void take(const Arrays& arrays, int64_t place, std::byte* row) const;
  /// When the first `count` rows of `batch` are there: pads the others, and mixes. `key`: of the batch.
  void finish(Arrays& arrays, int64_t batch, int64_t count, const SampleKey& key, Worker& worker) const;

 private:
  /// A row in an array of a part, which have the same numbers: where it lies in a row by itself.
  struct Place {
    size_t part = 0, offset = 0, size = 0;
  };

  std::vector<NamedPart> parts_;
  std::vector<Field> fields_;
  std::vector<Place> places_;  // those of a part one behind the other
  size_t bytes_ = 0;
  bool weighted_ = false;
};

}  // namespace millrace::data
