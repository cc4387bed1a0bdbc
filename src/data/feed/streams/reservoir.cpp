#include "data/feed/streams/reservoir.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace millrace::data {

Reservoir::Reservoir(int64_t size, uint64_t seed)
    : size_(size), kept_at_(size - 1), random_(seed, 0x72657365) {
  if (size < 1) fail<InputError>("a sample has at least one item, not {}", size);
  jump();
}

/// In (0, 1), never 0: with 53 random bits.
double Reservoir::uniform() {
  const uint64_t bits = uint64_t{random_.next()} << 32 | random_.next();
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

void Reservoir::jump() {
  weight_ *= std::exp(std::log(uniform()) / static_cast<double>(size_));
  const double far = std::floor(std::log(uniform()) / std::log1p(-weight_));
  // Beyond what anybody reads.
  constexpr int64_t never = INT64_MAX / 4;
  kept_at_ = far < 1e18 && kept_at_ < never ? kept_at_ + static_cast<int64_t>(far) + 1 : INT64_MAX;
}

int64_t Reservoir::next() {
  const int64_t item = at_++;
  if (item < size_) return item;
  if (item != kept_at_) return -1;
  jump();
  return static_cast<int64_t>(
      static_cast<unsigned __int128>(uint64_t{random_.next()} << 32 | random_.next()) *
          static_cast<uint64_t>(size_) >>
      64);
}

StreamSampled sample_stream(Stream& stream, int64_t count, uint64_t seed) {
  Reservoir reservoir(count, seed);
  std::vector<StreamRecord> kept;
  StreamRecord record;
  int64_t total = 0;
  for (; stream.next(record); ++total) {
    const int64_t place = reservoir.next();
    if (place < 0) continue;
    if (place == static_cast<int64_t>(kept.size()))
      kept.push_back(std::move(record));
    else
      kept[static_cast<size_t>(place)] = std::move(record);
  }
  if (kept.empty()) fail<InputError>("{}: has no samples", stream.path());
  std::sort(kept.begin(), kept.end(),
            [](const StreamRecord& a, const StreamRecord& b) { return a.at.number < b.at.number; });
  return {stream.samples(kept), total};
}

}  // namespace millrace::data
