// Batches of samples of a data set: read, kept where they fit, ordered, changed at random, ahead of time, by
// threads of its own. The one feed of all kinds of data with random access; what an array holds is its parts'
// business.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/feed.h>

#include "data/feed/part.h"
#include "data/feed/row_plan.h"

namespace millrace::data {

struct FeedOptions {
  int64_t batch = 128;
  uint64_t seed = 1;
  /// Weights of all samples in the loss; empty: all weigh the same. The field `weights` is there with them,
  /// or with `weighted` (an order by importance).
  std::vector<double> weights = {};
  bool weighted = false;
  /// This feed is number `rank` of `ranks` that share every epoch: it takes places rank, rank + ranks … of
  /// it. A batch is `batch` samples of each, a cursor is where all of them are, and the same for all;
  /// whatever their number, from a cursor on they take together exactly what is left of the epoch. All get as
  /// many batches; in the last one of an epoch that does not fill it, `valid` differs by at most 1 (and may
  /// be 0).
  int rank = 0, ranks = 1;
  /// Of the feed; 0: as many as there are CPUs. They sleep while the batches ahead are full.
  int threads = 0;
  /// Leaves out the last rows of an epoch when they fill no batch. Else the last batch is padded.
  bool drop_last = false;
  /// Samples are read once, at the start, when they fit into this many bytes; else anew for each batch.
  int64_t cache_bytes = int64_t{2} << 30;
  /// The most bytes of samples: those kept (which must also fit into cache_bytes) and the batches ahead, of
  /// which there are so many fewer. 0: one batch a thread ahead, and cache_bytes alone counts.
  int64_t memory = 0;
  const char* unit = "samples";
  /// Lines for the user, besides those of the data set and of the rows.
  std::vector<std::string> notes = {};
  /// Where there is no data set: Feed::path().
  std::string path = {};
  /// What `count` rows from a cursor on are made of, a line each, for Feed::rows(); null: that is told
  /// elsewhere.
  std::function<std::vector<std::string>(const RowPlan& rows, const Cursor& at, int64_t count)> describe =
      nullptr;
  /// Called while samples are read into memory, from one thread: (done, total).
  std::function<void(int64_t, int64_t)> progress = nullptr;
};

/// Fields: those of the parts in their order, then mixed.* of targets ("mixed.labels", with the prefix behind
/// "mixed.") and `mix` f32 [batch] where samples are mixed, then `weights` f32 [batch]. Arrays begin at
/// multiples of 64 bytes. `samples` may be null where no part reads. FeedBatch::samples are those taken, in
/// place of bad ones the next good ones. InputError: no good sample at all, nothing but a partial batch, too
/// little memory for two batches, weights that are none.
///
/// Where all samples are kept, and all parts only copy, next() makes the batch itself, without threads.
std::unique_ptr<Feed> sample_feed(std::shared_ptr<const Dataset> samples, std::vector<NamedPart> parts,
                                  std::unique_ptr<RowPlan> rows, FeedOptions options);

/// The fields that such a feed has.
std::vector<Field> feed_fields(const std::vector<NamedPart>& parts, bool weighted);

/// The rows of a recipe's order over all samples: `order` as "shuffle", "class-balanced" …, its column of
/// values read here. `labels`: the class of each sample, indices into `classes`; empty where there are none.
/// `parts`, `shares`: a mixture (how many samples of the source belong to each of the sources that it is put
/// together of, and how often those are drawn); empty: the source is one.
struct OrderedSamples {
  std::string order = "sequential";
  std::vector<int64_t> labels = {};
  std::vector<std::string> classes = {};
  std::vector<int64_t> parts = {};
  std::vector<double> shares = {};
};
std::unique_ptr<RowPlan> sample_rows(const Dataset& samples, const OrderedSamples& options);

}  // namespace millrace::data
