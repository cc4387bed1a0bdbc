// Batches of pictures from a source: decoded, shuffled, augmented, ahead of time, by threads of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/augment/augment.h"
#include "data/table/source.h"

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

struct LoaderOptions {
  int64_t batch = 128;
  uint64_t seed = 1;
  /// "sequential", "shuffle", "class-balanced" … (order/order.h).
  std::string order = "sequential";
  /// Column of weights of the samples in the loss; empty: all weigh the same.
  std::string sample_weight;
  /// A mixture: how many samples of the source belong to each of the sources that it is put together of, and how often those
  /// are drawn (order/mixture.h). Empty: the source is one.
  std::vector<int64_t> parts;
  std::vector<double> shares;
  /// This loader is number `rank` of `ranks` that share every epoch: it takes places rank, rank + ranks … of it. A batch is
  /// `batch` samples of each, a cursor is where all of them are, and the same for all; whatever their number, from a cursor on
  /// they take together exactly what is left of the epoch. All get as many batches; in the last one of an epoch that does not
  /// fill it, `valid` differs by at most 1 (and may be 0).
  int rank = 0, ranks = 1;
  /// Streams: samples that count as an epoch.
  int64_t epoch_samples = 0;
  /// As in a recipe: {"pad-crop 2", "flip"}.
  std::vector<std::string> augment;
  /// {"mixup 0.2", "cutmix 1"}: samples are mixed within their batch (augment/mix.h).
  std::vector<std::string> mix;
  /// Of the loader; 0: as many as there are CPUs. They sleep while the batches ahead are full.
  int threads = 0;
  /// Leaves out the last samples of an epoch when they fill no batch. Else the last batch is padded.
  bool drop_last = false;
  /// Pictures are decoded once, at the start, when they fit into this many bytes; else, and where the first augmentation is
  /// a random frame, anew for each batch.
  int64_t cache_bytes = int64_t{2} << 30;
  /// The most bytes of decoded pictures: those kept (which must also fit into cache_bytes) and the batches ahead, of which
  /// there are so many fewer. Of streams: of the shuffle buffers and the samples read ahead, too; several share equally what the
  /// batch leaves. 0: one batch a thread ahead, and cache_bytes alone counts.
  int64_t memory = 0;
  /// As FrameRule (frame.h); not used where the first augmentation is a random frame.
  int resize = 0, crop = 0;
  /// 1 grey, 3 colour, 0: as the first picture is. Grey pictures always become colour ones where those are
  /// wanted.
  int channels = 0;
  /// Called while pictures are decoded into the cache, from one thread: (done, total).
  std::function<void(int64_t, int64_t)> progress;
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
  int64_t pictures = 0;
  /// Of all threads together: on a CPU; ready to run while others had the CPUs (0 where the system does not tell); all.
  double cpu_seconds = 0, queued_seconds = 0, seconds = 0;
};

struct Batch {
  std::vector<uint8_t> pictures;   // [batch, C, H, W]
  std::vector<int64_t> labels;     // [batch], indices into the source's classes
  std::vector<int64_t> indices;    // [batch], of the samples in the source; -1 where padded
  std::vector<std::string> names;  // [valid], of samples of a stream; else empty: the source knows them
  /// Where samples are mixed: [batch], the class of what is mixed in, and the share that each sample keeps of itself. Else
  /// empty.
  std::vector<int64_t> mixed_labels;
  std::vector<float> mix;
  /// [batch], of the samples in the loss, where the loader is weighted(); else empty.
  std::vector<float> weights;
  /// Samples that count; the rest of a padded batch is black pictures of class 0.
  int64_t valid = 0;
  /// Where the batch begins; of a stream without the state.
  Cursor start;
};

class Stream;        // formats/streams/stream.h
struct NamedStream;  // there, too

class Loader {
 public:
  struct State;

  /// Looks at the source and, when it fits, decodes all of it. InputError: unknown augmentation, no good
  /// picture at all, pictures of different sizes (when they are not cached this can come from next()),
  /// nothing but a partial batch, too little memory for two batches.
  Loader(std::shared_ptr<const Source> source, LoaderOptions options);
  /// Pictures out of a stream, in the order "sequential" or "shuffle-buffer N": the next sample is drawn at random from N that
  /// were read, and the next of the stream takes its place. Bad samples are left out. It looks at the first good picture; the
  /// rest is read from the first next() on, where too little memory for the buffer is InputError as soon as it is certain, at the
  /// same sample always. When the stream ends it is read again. `classes` are all that there are; labels are
  /// their numbers or names. Options: those of caches and mixtures of indexed sources are not for streams. Each of
  /// several ranks reads the whole stream and decodes its own samples: they take every `ranks`-th of the order drawn, bad ones,
  /// which the others cannot know of, being left out of this rank's batch (`valid`). InputError or IoError.
  Loader(std::unique_ptr<Stream> stream, std::vector<std::string> classes, LoaderOptions options);
  /// Several streams, each with a buffer of its own, mixed by LoaderOptions::shares (set_shares()): the stream that the next
  /// sample is drawn from depends on seed and place, as in mixtures of indexed sources. Batch::indices are number · streams + stream.
  Loader(std::vector<NamedStream> streams, std::vector<std::string> classes, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch, valid until next() or seek() is called again. After the last batch of an epoch comes the
  /// first of the next one. What goes wrong in the background is thrown here.
  const Batch& next();
  /// Waits for the next batch, at most so long; true when next() would not wait (or would throw). Ends the life of the batch
  /// before, as next() does.
  bool ready(double seconds);

  /// Of the batch that next() will return.
  Cursor cursor() const;
  /// Goes there (and takes over the cursor's seed); InputError when the position is not in the source.
  void seek(const Cursor& cursor);
  /// As if so many batches had been taken; of a stream they are.
  void skip(int64_t batches);

  /// Of a stream: only its path and classes; the count is 0.
  const Source& source() const;
  bool streamed() const;
  /// Channels, height and width of the pictures.
  const Extent& extent() const;
  int64_t batch_size() const;
  int64_t batches_per_epoch() const;
  /// Samples that an epoch uses: all, or without those that drop_last leaves out.
  int64_t samples_per_epoch() const;
  bool cached() const;
  /// Do samples weigh differently in the loss: by a column, or by importance sampling?
  bool weighted() const;
  /// Are samples mixed with each other (LoaderOptions::mix)?
  bool mixed() const;
  /// What a cache of all decoded pictures takes; 0 where pictures have random frames, which are decoded anew each time.
  int64_t cache_needed() const;
  /// Bytes of decoded pictures that it keeps and has ahead, at most; of streams what LoaderOptions::memory says.
  int64_t memory() const;
  /// What that was so far, at the most; of streams without a limit it is not counted.
  int64_t memory_used() const;
  /// Bad samples met so far, in order of index.
  std::vector<BadSample> bad_samples() const;
  /// How many those are, of how many. Cheap.
  Tried tried() const;
  /// What the threads have done so far, beyond filling the cache. Cheap.
  LoaderWork work() const;
  /// Other shares of a mixture, from the batch on that next() will return; InputError.
  void set_shares(std::span<const double> shares);
  /// Streams: the first good pictures (u8 [N, C, H, W]), without augmentation, up to so many and before the first next().
  std::vector<uint8_t> first_pictures(int64_t most);

 private:
  std::unique_ptr<State> state_;
};

/// Runs `body(i)` for i in [0, count) on `threads` threads (0: as many as CPUs), the caller's included;
/// rethrows the exception of the lowest i that failed. For one-off work (decoding, rendering), not for steps
/// of a training.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& body);

}  // namespace millrace::data
