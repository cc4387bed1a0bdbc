// The order in which the samples of a stream are drawn from its shuffle buffer, without the samples
// themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/formats/streams/stream.h"

namespace millrace::data {

/// A place of the buffer: which sample lies there, and the CRC-32C of its bytes.
struct BufferedSample {
  StreamPlace at;
  uint32_t check = 0;
  bool operator==(const BufferedSample&) const = default;
};

/// One draw: what comes into the buffer before (at the beginning of a pass through the stream), the place
/// drawn, and what the stream has to take it; nothing at its end.
struct StreamDraw {
  bool new_pass = false;
  std::vector<BufferedSample> filled;
  size_t place = 0;
  std::optional<BufferedSample> next;
};

/// Whoever applies the same draws has the same state: the reader, which is ahead, and the consumer, whose
/// state is the cursor.
class StreamOrder {
 public:
  explicit StreamOrder(int64_t capacity) : capacity_(capacity) {}

  /// Buffers of 1 keep the order of the stream.
  int64_t capacity() const { return capacity_; }
  int64_t pass() const { return pass_; }
  /// Draws so far; of all passes.
  int64_t drawn() const { return drawn_; }
  /// One more than the number of the last sample that came in.
  int64_t incoming() const { return incoming_; }
  /// The stream has come to its end: nothing more comes in this pass.
  bool over() const { return over_; }
  const std::vector<BufferedSample>& buffered() const { return buffered_; }

  /// The place to draw from `size` that are filled: by Philox from the seed and the number of the draw.
  size_t choose(uint64_t seed, size_t size) const;
  /// The sample drawn.
  BufferedSample apply(const StreamDraw& draw);

  /// The state as Cursor::state: {2, 1, capacity, pass, drawn, incoming, over, then number, part, offset and
  /// check of each place}.
  std::vector<int64_t> state() const;
  /// InputError, beginning with `path`, when it is none of this capacity. Of an empty one: the beginning.
  void restore(const std::string& path, const std::vector<int64_t>& state);

 private:
  int64_t capacity_, pass_ = 0, drawn_ = 0, incoming_ = 0;
  bool over_ = false;
  std::vector<BufferedSample> buffered_;
};

/// The state of each of several streams in that of their mixture: {3, 1, how many, then of each its length
/// and itself}; of an empty one empty ones. InputError, beginning with `path`, when it is none of so many.
std::vector<std::vector<int64_t>> stream_states(const std::string& path, const std::vector<int64_t>& state,
                                                size_t streams);
std::vector<int64_t> mixture_state(const std::vector<std::vector<int64_t>>& states);

/// The size of the buffer that data.order names: "sequential" 1, "shuffle-buffer N" N. InputError for others.
int64_t stream_buffer(const std::string& order);

}  // namespace millrace::data
