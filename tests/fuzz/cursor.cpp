// Any numbers as the place to go on from in a stream or a mixture of streams, as a checkpoint has it: taken
// or refused, and what is taken says the same again and can be drawn on from. The first byte is the size of
// the buffer, the second how many streams.
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include "data/feed/streams/stream_order.h"
#include "fuzz/fuzz.h"

using namespace millrace;
using namespace millrace::data;

namespace {

/// Goes on to the end of the pass and into the next one.
void draw_on(StreamOrder order) {
  int64_t number = order.incoming();
  for (int i = 0; i < 20; ++i) {
    StreamDraw draw;
    const auto incoming = [&] { return BufferedSample{{number++, 0, 0}, 1}; };
    if (order.buffered().empty()) {
      draw.new_pass = order.over();
      if (draw.new_pass) number = 0;
      for (int64_t k = 0; k < order.capacity(); ++k) draw.filled.push_back(incoming());
    }
    const size_t size = order.buffered().size() + draw.filled.size();
    draw.place = order.choose(7, size);
    if (draw.place >= size) std::abort();
    if (!order.over() && i < 4) draw.next = incoming();
    (void)order.apply(draw);
    StreamOrder again(order.capacity());
    again.restore("again", order.state());  // what is written can be read
    if (again.state() != order.state()) std::abort();
  }
}

void restore(int64_t capacity, const std::vector<int64_t>& state) {
  StreamOrder order(capacity);
  order.restore("fuzz", state);
  if (!state.empty() && order.state() != state) std::abort();
  draw_on(std::move(order));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const int64_t capacity = 1 + data[0] % 8;
  const size_t streams = 1 + data[1] % 3;
  std::vector<int64_t> state((size - 2) / sizeof(int64_t));
  if (!state.empty()) std::memcpy(state.data(), data + 2, state.size() * sizeof(int64_t));
  fuzz::refuse_or_take([&] { restore(capacity, state); });
  fuzz::refuse_or_take([&] {
    const auto states = stream_states("fuzz", state, streams);
    if (!state.empty() && mixture_state(states) != state) std::abort();
    for (const auto& own : states) restore(capacity, own);
  });
  return 0;
}
