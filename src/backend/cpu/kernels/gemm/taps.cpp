#include "backend/cpu/kernels/gemm/taps.h"

#include <cstring>

namespace millrace::cpu::gemm {

Taps::Taps(const Geometry& g) : g_(g), zeros_(static_cast<size_t>(g.in_channels + block_columns), 0.0F) {}

void Taps::find(int64_t first, int64_t count, Window* windows) const {
  int64_t column = first % g_.out_width, row = first / g_.out_width % g_.out_height,
          image = first / g_.out_width / g_.out_height;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t top = row * g_.stride_h - g_.top, left = column * g_.stride_w - g_.left;
    windows[k] = {top, left, ((image * g_.in_height + top) * g_.in_width + left) * g_.in_channels};
    if (++column < g_.out_width) continue;
    column = 0;
    if (++row < g_.out_height) continue;
    row = 0;
    ++image;
  }
}

void Taps::move(const char* x, const Window* windows, int64_t count, int64_t tap, const char** moved) const {
  const int64_t down = tap / g_.kernel_width * g_.dilation_h, right = tap % g_.kernel_width * g_.dilation_w,
                offset = (down * g_.in_width + right) * g_.in_channels, bytes = g_.dtype.bytes();
  const auto* const outside = reinterpret_cast<const char*>(zeros_.data());
  for (int64_t k = 0; k < count; ++k) {
    const bool inside = static_cast<uint64_t>(windows[k].row + down) < static_cast<uint64_t>(g_.in_height) &&
                        static_cast<uint64_t>(windows[k].column + right) < static_cast<uint64_t>(g_.in_width);
    moved[k] = inside ? x + (windows[k].element + offset) * bytes : outside;
  }
}

TapOrder::TapOrder(const Arithmetic& arithmetic, int64_t taps) : arithmetic_(arithmetic), taps_(taps) {
  const int64_t lanes = arithmetic.lanes();
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
void TapOrder::move_rest(const void* from, void* to, int64_t step, int64_t begin, int64_t end,
                         bool out) const {
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

void TapOrder::outwards(const void* from, void* to, int64_t step, int64_t channels) const {
  const int64_t lanes = arithmetic_.lanes(), bytes = arithmetic_.bytes, whole = channels / lanes * lanes;
  for (int64_t c = 0; c < whole; c += lanes)
    arithmetic_.shuffle(static_cast<const char*>(from) + c * taps_ * bytes, lanes,
                        static_cast<char*>(to) + c * bytes, step, taps_, outwards_.index.data(),
                        outwards_.mask.data());
  if (bytes == 2)
    move_rest<uint16_t>(from, to, step, whole, channels, true);
  else
    move_rest<uint32_t>(from, to, step, whole, channels, true);
}

void TapOrder::inwards(const void* from, int64_t step, void* to, int64_t channels) const {
  const int64_t lanes = arithmetic_.lanes(), bytes = arithmetic_.bytes, whole = channels / lanes * lanes;
  for (int64_t c = 0; c < whole; c += lanes)
    arithmetic_.shuffle(static_cast<const char*>(from) + c * bytes, step,
                        static_cast<char*>(to) + c * taps_ * bytes, lanes, taps_, inwards_.index.data(),
                        inwards_.mask.data());
  if (bytes == 2)
    move_rest<uint16_t>(from, to, step, whole, channels, false);
  else
    move_rest<uint32_t>(from, to, step, whole, channels, false);
}

}  // namespace millrace::cpu::gemm
