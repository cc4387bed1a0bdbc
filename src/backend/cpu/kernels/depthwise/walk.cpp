#include <algorithm>

#include "backend/cpu/kernels/depthwise/kernels.h"
#include "backend/cpu/kernels/vectors.h"

namespace millrace::cpu::depthwise {

std::span<const Arithmetic* const> arithmetics() {
  static const auto all =
      for_this_cpu(arithmetic_avx512, arithmetic_avx2, arithmetic_baseline, arithmetic_bf16_avx512);
  return all;
}

Blocks::Blocks(int64_t channels, const Arithmetic& arithmetic, bool bf16, bool pairs)
    : few_(channels < arithmetic.block(bf16)),
      pairs_(pairs && bf16 && !few_),
      channels_(channels),
      block_(few_ ? 1 : arithmetic.block(bf16)) {
  const int64_t lanes = arithmetic.lanes;
  for (int64_t begin = 0; begin < channels; begin += block_)
    for (int64_t i = 0; i < block_; ++i) {
      int64_t within = i;
      if (pairs_)
        within = i % lanes / 4 * 8 + i / lanes * 4 + i % 4;
      else if (bf16 && !few_)
        within = i % lanes * 2 + i / lanes;
      channel_.push_back(std::min(begin, channels - block_) + within);
    }
}

double nanoseconds(const Geometry& g) {
  const auto elements = static_cast<double>(g.images * g.in_channels);
  const auto in = static_cast<double>(g.in_height * g.in_width),
             out = static_cast<double>(g.out_height * g.out_width),
             taps = static_cast<double>(g.kernel_height * g.kernel_width);
  return elements * (out * taps * 0.02 + (in + out) * static_cast<double>(g.dtype.bytes()) * 0.05);
}

Axis height_of(const Geometry& g) {
  return {g.in_height, g.out_height, g.kernel_height, g.stride_h, g.dilation_h, g.top};
}

Axis width_of(const Geometry& g) {
  return {g.in_width, g.out_width, g.kernel_width, g.stride_w, g.dilation_w, g.left};
}

std::vector<Phase> phases_of(const Axis& axis, bool gradient) {
  if (!gradient) {
    Phase all{0, 1, axis.out, axis.stride, {}};
    for (int64_t k = 0; k < axis.kernel; ++k) all.taps.push_back({k, k * axis.dilation - axis.padding});
    return {all};
  }
  std::vector<Phase> phases;
  for (int64_t first = 0; first < std::min(axis.stride, axis.in); ++first) {
    phases.push_back({first, axis.stride, (axis.in - first - 1) / axis.stride + 1, 1, {}});
    for (int64_t k = axis.kernel - 1; k >= 0; --k)
      if (const int64_t at = first + axis.padding - k * axis.dilation; at % axis.stride == 0)
        phases.back().taps.push_back({k, at / axis.stride});
  }
  return phases;
}

std::vector<Columns> columns_of(const Axis& axis, bool gradient, bool few_channels, bool whole_strips) {
  std::vector<Columns> result;
  for (Phase& phase : phases_of(axis, gradient)) {
    Columns columns{std::move(phase), gradient ? axis.out : axis.in};
    const auto& taps = columns.taps;
    bool neighbours = !few_channels;
    for (size_t t = 1; t < taps.size(); ++t) neighbours &= taps[t].shift == taps[t - 1].shift + 1;
    for (int s = 1; neighbours && s < shape_count; ++s)
      if (shapes[s].taps == static_cast<int64_t>(taps.size()) && shapes[s].stride == columns.stride)
        columns.shape = s;
    while (!whole_strips && columns.strip() > columns.count) ++columns.width;
    result.push_back(std::move(columns));
  }
  return result;
}

int64_t met_rows(const std::vector<Phase>& phases, int64_t row, int64_t height, const char* picture,
                 int64_t row_bytes, MetRow* met) {
  const Phase& phase = phases[static_cast<size_t>(row % phases[0].step)];
  int64_t count = 0;
  for (const Phase::Tap& tap : phase.taps)
    if (const int64_t at = row / phase.step * phase.stride + tap.shift; at >= 0 && at < height)
      met[count++] = {tap.kernel, picture + at * row_bytes};
  return count;
}

Strip strip_of(const Columns& columns, int64_t begin, const MetRow* rows, int64_t row_count,
               int64_t pixel_bytes, const char* zeros, void* weights, int64_t tap_bytes, int64_t kernel_width,
               Pointers& pointers) {
  const auto& taps = columns.taps;
  const bool together = columns.shape > 0;  // else a row for each tap
  const int64_t places = shapes[columns.shape].places(static_cast<int>(columns.strip()));
  const int64_t apart = together ? 1 : columns.stride;
  const void** in = pointers.in;
  int64_t count = 0;
  for (const MetRow* met = rows; met < rows + row_count; ++met)
    for (size_t t = 0; t < (together ? 1 : taps.size()); ++t) {
      // What only the columns behind the last one would meet counts as outside.
      const int64_t last = together ? taps.back().shift : taps[t].shift,
                    end = std::min(columns.size, columns.stride * (columns.count - 1) + last + 1);
      int64_t at = columns.stride * begin + taps[t].shift;
      for (int64_t j = 0; j < places; ++j, at += apart)
        *in++ = at >= 0 && at < end ? met->row + at * pixel_bytes : zeros;
      pointers.weights[count++] =
          static_cast<char*>(weights) + (met->kernel * kernel_width + taps[t].kernel) * tap_bytes;
    }
  const int64_t step = taps.size() > 1 ? taps[1].kernel - taps[0].kernel : 0;
  return {pointers.in, count, pointers.weights, step * tap_bytes, pointers.pixels, 0, 0, 0, nullptr, 0, 0};
}

}  // namespace millrace::cpu::depthwise
