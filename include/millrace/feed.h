// Batches of any kind of samples as named arrays: all that the training loop, evaluation and checkpoints see
// of the data.
//
// What the arrays hold is the business of the parts that a feed is made of. Run::training() (run.h) gives the
// feed of a recipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/array.h>

namespace millrace::data {

/// A place in the endless stream of batches: sample `position` of epoch `epoch` in the order that `seed`
/// gives. A cursor put back gives the same batches bit for bit, for any number of threads.
///
/// `state` is what a place needs beside these, its first two numbers the kind and the version of the others;
/// empty at the beginning, and where nothing is needed:
///   {1, 1, samples drawn of each source so far …}   mixtures
///   {2, 1, …}                                       streams
///   {3, 1, streams, length and state of each …}     mixtures of streams
struct Cursor {
  uint64_t seed = 0;
  int64_t epoch = 0, position = 0;
  std::vector<int64_t> state = {};
  bool operator==(const Cursor&) const = default;
};

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
  /// Of all threads together: on a CPU; ready to run while others had the CPUs (0 where the system does not
  /// tell); all.
  double cpu_seconds = 0, queued_seconds = 0, seconds = 0;
};

/// One array of every batch. The first dimension is the named one `batch`; where batches differ in length
/// (buckets), others may be the named `length`.
struct Field {
  std::string name;
  Type type;
};

struct FeedBatch {
  /// The content of each of Feed::fields(), dense and row-major, valid as long as the batch.
  std::vector<std::span<const std::byte>> arrays;
  /// Where a row is one sample of the data: their numbers there, `valid` of them; else empty.
  std::span<const int64_t> samples;
  /// The names of samples of a stream; else empty.
  std::span<const std::string> names;
  /// The size of `length`; 0 where no field has it.
  int64_t length = 0;
  /// Samples that count, the first ones; the rest pads the batch.
  int64_t valid = 0;
  /// Where the batch begins.
  Cursor start;
};

/// An endless stream of batches of one size that goes by {seed, epoch, position}: the same for any number of
/// threads, and after a cursor is put back.
class Feed {
 public:
  virtual ~Feed() = default;

  /// The arrays of a batch: those of the inputs, then the targets (-1 where none counts), then by name what
  /// the loss needs besides, each shaped as the targets:
  ///   weights       f32, of the targets in the loss;
  ///   counted       f32, where only some targets count: number of targets / number that count at those,
  ///                 else 0, so that a mean over all, times this, is the mean over those that count; loss
  ///                 and accuracy are taken by it;
  ///   mixed.NAME    of each field of the targets, what is mixed in, and mix, f32, the share that the
  ///                 sample keeps of itself.
  virtual std::span<const Field> fields() const = 0;
  /// The place of a field; InternalError where there is none of this name.
  size_t field(std::string_view name) const;
  bool has_field(std::string_view name) const;
  /// A copy of the array of field `i` of a batch; its type is the field's with the sizes of `batch` and
  /// `length`. InternalError where there is no such field.
  Array array(const FeedBatch& batch, size_t i) const;
  /// The sizes that `length` takes, ascending; empty where no field has it.
  virtual std::vector<int64_t> lengths() const { return {}; }

  /// The next batch, valid until next() or seek() is called again. What goes wrong in the background is
  /// thrown here.
  virtual const FeedBatch& next() = 0;
  /// Waits for the next batch, so many seconds at most; false when it is still not there.
  virtual bool ready(double /*seconds*/) { return true; }
  /// Of the batch that next() will return.
  virtual Cursor cursor() const = 0;
  /// Goes there (and takes over the cursor's seed); InputError when there is no such place.
  virtual void seek(const Cursor& cursor) = 0;

  virtual int64_t batch_size() const = 0;
  virtual int64_t batches_per_epoch() const = 0;
  /// Without random access: how many samples there are is not known, and count() is 0.
  virtual bool streamed() const { return false; }
  /// Samples of the whole source, which a run that goes on must find again.
  virtual int64_t count() const = 0;
  /// Of their content, where that is at hand; else 0.
  virtual uint32_t digest() const { return 0; }
  /// What it was opened from, and what a sample is called: "pictures", "windows".
  virtual const std::string& path() const = 0;
  virtual const char* unit() const = 0;
  /// Lines for the user about what was opened.
  virtual std::vector<std::string> notes() const { return {}; }

  /// What the rows of the batch that next() returned last are made of, a line each; empty where that is told
  /// elsewhere.
  virtual std::vector<std::string> rows() const { return {}; }

  /// As if so many batches had been taken; of a stream they are.
  virtual void skip(int64_t batches);
  /// Other shares of a mixture, from the batch on that next() will return; InputError.
  virtual void set_shares(std::span<const double> shares);
  /// Samples that an epoch uses.
  virtual int64_t samples_per_epoch() const { return batches_per_epoch() * batch_size(); }

  /// Ready in memory: next() only copies.
  virtual bool cached() const = 0;
  /// Bytes that keeping all samples takes; 0 where they cannot be kept.
  virtual int64_t cache_needed() const { return 0; }
  /// Of a sample, as it would be kept.
  virtual int64_t sample_bytes() const { return 0; }
  /// Bytes of samples and batches in memory; 0 where that is not counted.
  virtual int64_t memory() const { return 0; }
  virtual LoaderWork work() const = 0;
  virtual std::vector<BadSample> bad_samples() const { return {}; }
  virtual Tried tried() const { return {}; }
};

}  // namespace millrace::data
