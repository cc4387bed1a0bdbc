#include "backend/cpu/kernels/gemm/taps.h"

#include "backend/cpu/kernels/gemm/arithmetic.h"

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

}  // namespace millrace::cpu::gemm
