// Batches of samples of streams: read once from the beginning to the end, through a shuffle buffer, and again
// when they end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <millrace/feed.h>

#include "data/feed/part.h"
#include "data/formats/streams/stream.h"

namespace millrace::data {

struct StreamFeedOptions {
  int64_t batch = 128;
  uint64_t seed = 1;
  /// "sequential", or "shuffle-buffer N": the next sample is drawn at random from N that were read, and the
  /// next of the stream takes its place.
  std::string order = "sequential";
  /// Of several streams: how often each is drawn from (order/shares.h).
  std::vector<double> shares;
  /// Samples that count as an epoch.
  int64_t epoch_samples = 0;
  /// Column of the samples' weights in the loss; empty: all weigh the same.
  std::string sample_weight;
  /// This feed is number `rank` of `ranks`. Each reads the streams as a whole and makes only its own samples:
  /// they take every `ranks`-th of the order drawn, bad ones, which the others cannot know of, being left out
  /// of this rank's batch (`valid`).
  int rank = 0, ranks = 1;
  /// That make samples; 0: as many as there are CPUs. Each stream has one more, which reads it.
  int threads = 0;
  /// The most bytes of the shuffle buffers and the samples read and made ahead; several streams share equally
  /// what the batch leaves. 0: any.
  int64_t memory = 0;
  const char* unit = "samples";
  std::vector<std::string> notes;
};

/// Makes the parts for streams whose first samples these are. Where it throws InputError without having
/// looked at any of them, or after it has looked at the last, it is called again with more, up to 1000: so a
/// part may look for the first good sample. The parts keep nothing of `head`. They must not have arrays with
/// the dimension `length`.
using StreamParts = std::function<std::vector<NamedPart>(const Dataset& head)>;

/// Fields and arrays as of sample_feed(). FeedBatch::samples are number in the stream · streams + stream.
/// Names begin with the name of the stream, where there are several. A batch is valid until ready(), too, is
/// called.
class StreamFeed : public Feed {
 public:
  /// Good samples at the streams' beginning, `most` together, of each as its share is (fewer where they end):
  /// next() gives them, too. Before the first next() only; the feed must stay as long as they are
  /// used. Errors as of next().
  virtual std::shared_ptr<const Dataset> first_samples(int64_t most) = 0;
  /// Instead of what make_parts made: parts that were made by looking at first_samples(). Before the first
  /// next() only.
  virtual void take_parts(std::vector<NamedPart> parts) = 0;
};

/// Bad samples are left out. It reads what make_parts looks at; the rest is read from the first next() on,
/// where too little memory for the buffer is InputError as soon as it is certain, at the same sample always.
/// Several streams have a buffer each and are mixed by the shares (Feed::set_shares()): the stream that the
/// next sample is drawn from depends on seed and place alone. InputError or IoError.
std::unique_ptr<StreamFeed> stream_feed(std::vector<NamedStream> streams, const StreamParts& make_parts,
                                        StreamFeedOptions options);

}  // namespace millrace::data
