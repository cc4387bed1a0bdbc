// Batches of pictures from a data set: decoded, shuffled, augmented, ahead of time, by threads of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/codecs/pictures/extent.h"
#include "data/feed/batch.h"
#include "data/feed/cursor.h"
#include "data/feed/loader_options.h"
#include "data/feed/loader_work.h"
#include "data/table/dataset.h"

namespace millrace::data {

struct LoaderState;  // loader_state.h

class Loader {
 public:
  /// Of a data set with a column of pictures, and of the classes of its class_column() or else of its find_label() (labels.h), where
  /// there is one. Looks at it and, when it fits, decodes all of it. InputError: unknown augmentation, no good
  /// picture at all, pictures of different sizes (when they are not cached this can come from next()),
  /// nothing but a partial batch, too little memory for two batches.
  Loader(std::shared_ptr<const Dataset> samples, LoaderOptions options);
  /// Of another kind: of streams (streams/stream_loader.h).
  explicit Loader(std::unique_ptr<LoaderState> state);
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

  /// What it reads, as it was given; InternalError of a stream, whose samples nobody can count.
  const Dataset& samples() const;
  int64_t count() const { return streamed() ? 0 : samples().count(); }
  const std::string& path() const;
  /// Label i is classes()[i]; empty where samples have no classes (labels are 0).
  const std::vector<std::string>& classes() const;
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
  std::unique_ptr<LoaderState> state_;
};

}  // namespace millrace::data
