#include "backend/cpu/kernels/gemm/tap_order.h"

#include <cstddef>

namespace millrace::cpu::gemm {

// Tables and permutations grow with the square of the taps; of more than these, elements move one by one.
constexpr int64_t most_taps = 64;

bool TapOrder::whole_vectors() const { return taps_ <= most_taps && arithmetic_.shuffle != nullptr; }

TapOrder::TapOrder(const Arithmetic& arithmetic, int64_t taps) : arithmetic_(arithmetic), taps_(taps) {
  const int64_t lanes = arithmetic.lanes();
  if (!whole_vectors()) return;
  for (Tables* tables : {&outwards_, &inwards_}) {
    tables->index.assign(static_cast<size_t>(taps * lanes), 0);
    tables->mask.assign(static_cast<size_t>(taps * taps), 0);
  }
  // Of `lanes` channels: element e of the inner order is tap e % taps of channel e / taps.
  for (int64_t e = 0; e < taps * lanes; ++e) {
    const int64_t tap = e % taps, channel = e / taps, vector = e / lanes, lane = e % lanes;
    outwards_.index[static_cast<size_t>(tap * lanes + channel)] = static_cast<uint16_t>(lane);
    outwards_.mask[static_cast<size_t>(tap * taps + vector)] |= 1U << channel;
    inwards_.index[static_cast<size_t>(vector * lanes + lane)] = static_cast<uint16_t>(channel);
    inwards_.mask[static_cast<size_t>(vector * taps + tap)] |= 1U << lane;
  }
}

template <typename T>
void TapOrder::move_rest(bool out, const void* from, void* to, int64_t step, int64_t begin,
                         int64_t end) const {
  const T* const source = static_cast<const T*>(from);
  T* const target = static_cast<T*>(to);
  for (int64_t c = begin; c < end; ++c)
    for (int64_t t = 0; t < taps_; ++t) {
      if (out)
        target[t * step + c] = source[c * taps_ + t];
      else
        target[c * taps_ + t] = source[t * step + c];
    }
}

void TapOrder::move(bool out, const void* from, void* to, int64_t step, int64_t channels) const {
  const int64_t lanes = arithmetic_.lanes(), bytes = arithmetic_.bytes,
                whole = whole_vectors() ? channels / lanes * lanes : 0;
  const Tables& tables = out ? outwards_ : inwards_;
  const int64_t inner = taps_ * bytes;  // from one channel to the next where taps are innermost
  for (int64_t c = 0; c < whole; c += lanes)
    arithmetic_.shuffle(static_cast<const char*>(from) + c * (out ? inner : bytes), out ? lanes : step,
                        static_cast<char*>(to) + c * (out ? bytes : inner), out ? step : lanes, taps_,
                        tables.index.data(), tables.mask.data());
  if (bytes == 2)
    move_rest<uint16_t>(out, from, to, step, whole, channels);
  else
    move_rest<uint32_t>(out, from, to, step, whole, channels);
}

}  // namespace millrace::cpu::gemm
