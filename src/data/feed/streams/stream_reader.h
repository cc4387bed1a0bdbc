// Draws samples from a stream through its shuffle buffer, and finds its way back to any place. Part of the
// loader of streams.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "data/feed/streams/stream_memory.h"
#include "data/feed/streams/stream_order.h"

namespace millrace::data {

/// For one thread at a time, except stop().
class StreamReader {
 public:
  StreamReader(std::unique_ptr<Stream> stream, int64_t buffer, uint64_t seed)
      : stream_(std::move(stream)), order_(buffer), seed_(seed), memory_(stream_->path(), buffer) {}

  struct Drawn {
    StreamRecord record;
    StreamDraw draw;
    int64_t pass = 0, number = 0;  // the number of the draw
  };
  /// The next sample in the order drawn. At the end of the stream what is left in the buffer comes, then the
  /// stream from its beginning. Errors as of Stream::next(); InputError too when a stream read again gives
  /// other samples than before.
  Drawn next();

  /// Goes on from a state (StreamOrder::state); takes effect with the next next(), which may have to read the
  /// stream again up to there. InputError when the state is none of this.
  void seek(uint64_t seed, const std::vector<int64_t>& state);
  /// Samples at the beginning, which next() will give, too: before the first next() only. Fewer when the
  /// stream ends.
  const std::deque<StreamRecord>& head(size_t count);
  void stop() {
    stream_->stop();
    memory_.stop();
  }
  /// To be called after stop(): what waited was given up.
  void stopped() { given_up_ = true; }

  /// Counts what is read and kept, from limit_memory() on. Who draws a sample says what becomes of it: draw()
  /// or drop().
  StreamMemory& memory() { return memory_; }
  /// As StreamMemory::limit(). Before the first sample is read, or head() only.
  void limit_memory(int64_t bytes, int64_t decoded);

  const Stream& stream() const { return *stream_; }
  const StreamOrder& order() const { return order_; }

 private:
  bool pull(StreamRecord& record);
  void begin_again(const StreamPlace& place);
  void find_place();
  BufferedSample enter(StreamRecord record);

  std::unique_ptr<Stream> stream_;
  StreamOrder order_;
  uint64_t seed_;
  std::vector<StreamRecord> contents_;  // of the buffer, as order_.buffered()
  std::deque<StreamRecord> head_;       // read ahead
  bool head_over_ = false;              // and there is no more
  int64_t pulled_ = 0;                  // number of the sample that pull() gives next
  bool found_ = true, given_up_ = false;
  StreamMemory memory_;
};

}  // namespace millrace::data
