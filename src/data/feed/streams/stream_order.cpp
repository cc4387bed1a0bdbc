#include "data/feed/streams/stream_order.h"

#include <algorithm>

#include <millrace/random.h>

#include "base/format.h"
#include "base/number_from.h"

namespace millrace::data {
namespace {

constexpr int64_t kKind = 2, kVersion = 1;
constexpr size_t kFixed = 7, kEach = 4;
constexpr int64_t kMixtureKind = 3, kMixtureVersion = 1;
/// More than there can be, so that counting on from a damaged state overflows nothing.
constexpr int64_t kMost = int64_t{1} << 62;

[[noreturn]] void wrong_state(const std::string& path, const char* why) {
  fail<InputError>("{}: the place to go on from {}; is the recipe another?", path, why);
}

}  // namespace

size_t StreamOrder::choose(uint64_t seed, size_t size) const {
  const auto words =
      philox({static_cast<uint32_t>(drawn_), static_cast<uint32_t>(drawn_ >> 32), 0, 0x73747265},
             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = uint64_t{words[0]} << 32 | words[1];
  return static_cast<size_t>(static_cast<unsigned __int128>(bits) * size >> 64);
}

BufferedSample StreamOrder::apply(const StreamDraw& draw) {
  if (draw.new_pass) {
    ++pass_;
    incoming_ = 0;
  }
  buffered_.insert(buffered_.end(), draw.filled.begin(), draw.filled.end());
  if (!draw.filled.empty()) incoming_ = draw.filled.back().at.number + 1;
  const BufferedSample drawn = buffered_.at(draw.place);
  over_ = !draw.next;
  if (draw.next) {
    buffered_[draw.place] = *draw.next;
    incoming_ = draw.next->at.number + 1;
  } else {
    buffered_[draw.place] = buffered_.back();
    buffered_.pop_back();
  }
  ++drawn_;
  return drawn;
}

std::vector<int64_t> StreamOrder::state() const {
  std::vector<int64_t> state = {kKind, kVersion, capacity_, pass_, drawn_, incoming_, over_ ? 1 : 0};
  for (const BufferedSample& each : buffered_)
    state.insert(state.end(), {each.at.number, each.at.part, each.at.offset, int64_t{each.check}});
  return state;
}

void StreamOrder::restore(const std::string& path, const std::vector<int64_t>& state) {
  *this = StreamOrder(capacity_);
  if (state.empty()) return;
  const auto wrong = [&](const char* why) { wrong_state(path, why); };
  if (state.size() < kFixed || (state.size() - kFixed) % kEach != 0 || state[0] != kKind)
    wrong("is none of a stream");
  if (state[1] != kVersion) wrong("was written by another version of Millrace");
  if (state[2] != capacity_) wrong("is of a shuffle buffer of another size");
  pass_ = state[3];
  drawn_ = state[4];
  incoming_ = state[5];
  over_ = state[6] != 0;
  bool sound = state[6] == 0 || state[6] == 1;
  for (size_t i = kFixed; i < state.size(); i += kEach) {
    buffered_.push_back({{state[i], state[i + 1], state[i + 2]}, static_cast<uint32_t>(state[i + 3])});
    sound = sound && state[i + 3] == int64_t{buffered_.back().check};
  }
  const auto count = [](int64_t number) { return number >= 0 && number <= kMost; };
  // While the stream lasts the buffer is full, except before the first draw.
  sound = sound && count(pass_) && count(drawn_) && count(incoming_) &&
          (over_ || drawn_ == 0 ? buffered_.size() <= static_cast<size_t>(capacity_)
                                : buffered_.size() == static_cast<size_t>(capacity_)) &&
          (drawn_ > 0 || buffered_.empty());
  std::vector<int64_t> numbers;
  for (const BufferedSample& each : buffered_) {
    sound = sound && each.at.number >= 0 && each.at.number < incoming_ && count(each.at.part) &&
            count(each.at.offset);
    numbers.push_back(each.at.number);
  }
  std::sort(numbers.begin(), numbers.end());
  if (!sound || std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) wrong("is damaged");
}

std::vector<std::vector<int64_t>> stream_states(const std::string& path, const std::vector<int64_t>& state,
                                                size_t streams) {
  std::vector<std::vector<int64_t>> states(streams);
  if (state.empty()) return states;
  if (state.size() < 3 || state[0] != kMixtureKind) wrong_state(path, "is none of a mixture of streams");
  if (state[1] != kMixtureVersion) wrong_state(path, "was written by another version of Millrace");
  if (state[2] != static_cast<int64_t>(streams)) wrong_state(path, "is of another number of streams");
  auto at = state.begin() + 3;
  for (std::vector<int64_t>& own : states) {
    if (at == state.end() || *at < 0 || *at > state.end() - at - 1) wrong_state(path, "is damaged");
    const int64_t size = *at++;
    own.assign(at, at + size);
    at += size;
  }
  if (at != state.end()) wrong_state(path, "is damaged");
  return states;
}

std::vector<int64_t> mixture_state(const std::vector<std::vector<int64_t>>& states) {
  std::vector<int64_t> all = {kMixtureKind, kMixtureVersion, static_cast<int64_t>(states.size())};
  for (const std::vector<int64_t>& own : states) {
    all.push_back(static_cast<int64_t>(own.size()));
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

int64_t stream_buffer(const std::string& order) {
  if (order == "sequential") return 1;
  constexpr std::string_view name = "shuffle-buffer ";
  if (order.starts_with(name))
    if (const auto size = number_from(order.substr(name.size())); size && *size >= 1 && *size <= 100'000'000)
      return *size;
  fail<InputError>(
      "data.order = \"{}\": a stream is read once from its beginning on: \"sequential\", or \"shuffle-buffer "
      "N\" "
      "with the number of samples to keep in memory, as in \"shuffle-buffer 2000\"",
      order);
}

}  // namespace millrace::data
