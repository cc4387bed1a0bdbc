// A part of what a sample becomes: the arrays of one input of a model, or of the targets of one output.
//
// A feed (sample_feed.h, streams/stream_feed.h) reads samples, keeps what may be kept, orders them, and lets
// its parts fill the rows of a batch. A part knows nothing of batches, threads, caches or orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/error.h>
#include <millrace/feed.h>

#include "data/augment/sample_key.h"

namespace millrace::data {

/// Tokens that follow each other, of one text (or of all texts joined).
struct Extract {
  int64_t begin = 0, size = 0;  // in the corpus
  int64_t text = -1;            // -1: of several
};

/// A row of a batch, as parts see it. The key names it to whatever is random; its index is the sample's.
struct Row {
  SampleKey key;
  int64_t length = 0;                      // of the batch's `length`; 0 where no field has it
  std::span<const Extract> extracts = {};  // of a corpus; empty where the row is a sample of the data set
};

/// Bytes of a row of an array of this type, whose first dimension is the batch, where `length` is so much.
size_t row_bytes(const Type& type, int64_t length);

/// In a handler of an error that reading a sample ended in: why the sample is bad, without its name, which is
/// told beside it. Throws it again where it is no fault of the sample: its server is away, Millrace is wrong.
std::string reason_or_rethrow(const Error& error, const Dataset& from, int64_t index);

/// All members may be called from many threads at once.
class Part {
 public:
  /// What one thread works with: a part makes and casts its own.
  struct Scratch {
    virtual ~Scratch() = default;
  };

  virtual ~Part() = default;

  /// The arrays that it fills, first dimension `batch`, others fixed or `length`. Names are the part's own
  /// ("pictures", "ids").
  virtual std::span<const Field> fields() const = 0;
  virtual std::unique_ptr<Scratch> scratch() const { return nullptr; }

  /// Bytes of a sample as read() leaves it, the same for all; 0: nothing is read, put() knows what belongs to
  /// a sample's number.
  virtual size_t stored_bytes() const = 0;
  /// Is what read() leaves the same each time, so that it may be kept? Not where a random frame is decoded.
  virtual bool keeps() const { return true; }
  /// Reads and decodes sample `index` of `from`, which has the columns of the data set that the part was made
  /// for (in any order). "" or why the sample is bad: it is then replaced by the next good one. InputError
  /// where it is good, but does not go with the others (another size): that stops. `random`: names the sample
  /// where keeps() is false; null to read it as evaluation does.
  virtual std::string read(const Dataset& from, int64_t index, const SampleKey* random, Scratch* scratch,
                           std::byte* stored) const = 0;
  /// Samples `first` … `first` + `count` - 1 at once, `stride` bytes from one to the next, where columns are
  /// read faster so; false, and nothing done, where they are not. Errors name the sample.
  virtual bool read_run(const Dataset& /*from*/, int64_t /*first*/, int64_t /*count*/, std::byte* /*stored*/,
                        size_t /*stride*/) const {
    return false;
  }

  /// Is what read() leaves the row of its only array, so that it may be read to where it belongs?
  virtual bool reads_rows() const { return false; }
  /// From what was read to a row of each of its arrays (`arrays[k]` is where the row of fields()[k] begins),
  /// changed at random as in training where the part was made for that.
  virtual void put(const std::byte* stored, const Row& row, Scratch* scratch,
                   std::span<std::byte* const> arrays) const = 0;
  /// A row that only pads the batch: zeros, unless a part wants something else there (labels: -1).
  virtual void pad(const Row& row, std::span<std::byte* const> arrays) const;
  /// When all rows of a batch are there: what needs them all. `arrays[k]` is the whole array of fields()[k].
  virtual void finish(int64_t /*batch*/, int64_t /*length*/, std::span<std::byte* const> /*arrays*/) const {}
  /// Does put() only copy, so that no thread is worth its while?
  virtual bool only_copies() const { return false; }

  /// Does training mix the samples of a batch with one another?
  virtual bool mixes() const { return false; }
  /// Mixes each of the first `count` rows with the one before it (the first with the last), all in one share,
  /// which each keeps of itself and which is returned. `batch` names it: seed, epoch, position of its first
  /// sample.
  virtual float mix(std::span<std::byte* const> /*arrays*/, int64_t /*count*/, const SampleKey& /*batch*/,
                    Scratch* /*scratch*/) const {
    return 1;
  }
  /// Of its own, beside what the feed keeps and has ahead: bytes, and a digest of the samples in them; 0
  /// where it has none.
  virtual int64_t memory() const { return 0; }
  virtual uint32_t digest() const { return 0; }
};

/// A part and what its fields' names begin with: "picture." of an input of that name, "" of the only one.
struct NamedPart {
  std::string prefix;
  std::shared_ptr<const Part> part;
  /// Targets: where samples are mixed, a second array of each field, "mixed.NAME", holds what is mixed in.
  bool target = false;
};

/// Of parts the one that mixes, where any does. InputError: several.
std::optional<size_t> mixing_part(std::span<const NamedPart> parts);

/// What is left to do when the rows of a batch are there, the first `valid` of which count: samples are
/// mixed, parts finish, and what was mixed in, and in which share, fills the arrays for that. `arrays`: those
/// of feed_fields(). `key` names the batch, `scratch` is that of each part.
void finish_batch(std::span<const NamedPart> parts, std::span<std::byte* const> arrays, int64_t batch,
                  int64_t valid, int64_t length, const SampleKey& key,
                  std::span<const std::unique_ptr<Part::Scratch>> scratch);

/// A column that a part looks at, found again in data sets with other orders of columns.
class ColumnPlace {
 public:
  ColumnPlace() = default;
  /// InputError names the nearest one where there is none of this name.
  ColumnPlace(const Dataset& dataset, std::string name);
  size_t in(const Dataset& dataset) const;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  size_t place_ = 0;
};

}  // namespace millrace::data
