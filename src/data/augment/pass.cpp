#include "data/augment/pass.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/resize/loops.h"
#include "data/augment/colour_loops.h"

namespace millrace::data {

bool Pass::window(int down, int right, Border border) {
  if (!empty()) return false;
  moved_ = down != 0 || right != 0;
  down_ = down;
  right_ = right;
  border_ = border;
  return true;
}

void Pass::look_up(const Table& table) {
  for (int i = 0; i < 256; ++i) table_[i] = looks_up_ ? table[table_[i]] : table[i];
  looks_up_ = true;
}

void Pass::moved_plane(const Extent& extent, const uint8_t* in, uint8_t* out) const {
  const int height = extent.height, width = extent.width;
  const auto outside = [this](int i, int size) {
    if (i >= 0 && i < size) return i;
    if (border_ == Border::zero) return -1;
    if (border_ == Border::edge) return std::clamp(i, 0, size - 1);
    return i < 0 ? -i : 2 * (size - 1) - i;
  };
  const cpu::ResizeLoops& loops = cpu::resize_loops();
  // Columns from..to of a row lie inside the picture and are copied as a block; mirrored, it begins where it
  // ended.
  const int from = std::clamp(-right_, 0, width), to = std::clamp(width - right_, from, width);
  const int block = mirrored_ ? width - to : from;
  for (int y = 0; y < height; ++y, out += width) {
    const int row = outside(y + down_, height);
    if (row < 0) {
      std::memset(out, 0, static_cast<size_t>(width));
      continue;
    }
    const uint8_t* const line = in + static_cast<size_t>(row) * width;
    if (mirrored_)
      loops.turned(line + from + right_, to - from, out + block);
    else if (to > from)
      std::memcpy(out + block, line + from + right_, static_cast<size_t>(to - from));
    const auto fill = [&](int x) {
      const int column = outside(x + right_, width);
      out[mirrored_ ? width - 1 - x : x] = column < 0 ? 0 : line[column];
    };
    for (int x = 0; x < from; ++x) fill(x);
    for (int x = to; x < width; ++x) fill(x);
  }
}

void Pass::run(const Extent& extent, const uint8_t* in, uint8_t* out) const {
  const ColourLoops& colours = colour_loops();
  const auto plane = static_cast<int64_t>(extent.plane());
  if (!moved_ && !mirrored_) {
    if (looks_up_)
      colours.look_up(table_.data(), in, plane * extent.channels, out);
    else
      std::memcpy(out, in, extent.bytes());
    return;
  }
  for (int c = 0; c < extent.channels; ++c, in += plane, out += plane) {
    moved_plane(extent, in, out);
    if (looks_up_) colours.look_up(table_.data(), out, plane, out);  // while it is in the cache
  }
}

void Pass::run_in_place(const Extent& extent, uint8_t* planes) const {
  if (looks_up_) colour_loops().look_up(table_.data(), planes, static_cast<int64_t>(extent.bytes()), planes);
}

}  // namespace millrace::data
