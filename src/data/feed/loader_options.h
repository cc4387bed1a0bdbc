// What a loader is told.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace millrace::data {

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

}  // namespace millrace::data
