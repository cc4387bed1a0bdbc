// Batches of pictures from a source: decoded, shuffled, augmented, ahead of time, by threads of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/augment/augment.h"
#include "data/source.h"

namespace millrace::data {

/// A place in the endless stream of batches: sample `position` of epoch `epoch` in the order that `seed`
/// gives. A cursor put back gives the same batches bit for bit, for any number of threads.
struct Cursor {
  uint64_t seed = 0;
  int64_t epoch = 0, position = 0;
  bool operator==(const Cursor&) const = default;
};

struct LoaderOptions {
  int64_t batch = 128;
  uint64_t seed = 1;
  /// "sequential", "shuffle", "class-balanced" … (order/order.h).
  std::string order = "sequential";
  /// Column of weights of the samples in the loss; empty: all weigh the same.
  std::string weights;
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
  std::vector<uint8_t> pictures;  // [batch, C, H, W]
  std::vector<int64_t> labels;    // [batch], indices into the source's classes
  std::vector<int64_t> indices;   // [batch], of the samples in the source; -1 where padded
  /// Where samples are mixed: [batch], the class of what is mixed in, and the share that each sample keeps of itself. Else
  /// empty.
  std::vector<int64_t> mixed_labels;
  std::vector<float> mix;
  /// [batch], of the samples in the loss, where the loader is weighted(); else empty.
  std::vector<float> weights;
  /// Samples that count; the rest of a padded batch is black pictures of class 0.
  int64_t valid = 0;
  /// Where the batch begins.
  Cursor start;
};

class Loader {
 public:
  /// Looks at the source and, when it fits, decodes all of it. InputError: unknown augmentation, no good
  /// picture at all, pictures of different sizes (when they are not cached this can come from next()),
  /// nothing but a partial batch.
  Loader(std::shared_ptr<const Source> source, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch, valid until next() or seek() is called again. After the last batch of an epoch comes the
  /// first of the next one. What goes wrong in the background is thrown here.
  const Batch& next();

  /// Of the batch that next() will return.
  Cursor cursor() const;
  /// Goes there (and takes over the cursor's seed); InputError when the position is not in the source.
  void seek(const Cursor& cursor);

  const Source& source() const;
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
  /// Bad samples met so far, in order of index.
  std::vector<BadSample> bad_samples() const;
  /// How many those are, of how many. Cheap.
  Tried tried() const;
  /// What the threads have done so far, beyond filling the cache. Cheap.
  LoaderWork work() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Runs `body(i)` for i in [0, count) on `threads` threads (0: as many as CPUs), the caller's included;
/// rethrows the exception of the lowest i that failed. For one-off work (decoding, rendering), not for steps
/// of a training.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& body);

}  // namespace millrace::data
