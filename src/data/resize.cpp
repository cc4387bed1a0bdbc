// Separable resampling with the triangle filter, in fixed point: the algorithm of Pillow's Resample.c, the
// horizontal pass first.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/format.h"
#include "data/picture.h"

namespace millrace::data {
namespace {

constexpr int precision =
    32 - 8 - 2;  // fractional bits: eight for the value, two for the overshoot of other filters

/// For every output position the first input position and the weights from there on.
struct Weights {
  int width = 0;  // weights of one output position
  std::vector<int> first, count;
  std::vector<int32_t> weights;
};

Weights make_weights(int in, int out) {
  const double scale = static_cast<double>(in) / out, filter = std::max(scale, 1.0);
  Weights table;
  table.width = static_cast<int>(std::ceil(filter)) * 2 + 1;
  table.first.resize(out);
  table.count.resize(out);
  table.weights.resize(static_cast<size_t>(out) * table.width);
  std::vector<double> real(table.width);
  for (int i = 0; i < out; ++i) {
    const double centre = (i + 0.5) * scale;
    const int from = std::max(static_cast<int>(centre - filter + 0.5), 0);
    const int to = std::min(static_cast<int>(centre + filter + 0.5), in);
    double sum = 0;
    for (int x = from; x < to; ++x) {
      real[x - from] = std::max(0.0, 1.0 - std::abs((x - centre + 0.5) * (1.0 / filter)));
      sum += real[x - from];
    }
    table.first[i] = from;
    table.count[i] = to - from;
    for (int k = 0; k < to - from; ++k)
      table.weights[static_cast<size_t>(i) * table.width + k] =
          static_cast<int32_t>(0.5 + (sum == 0 ? 0.0 : real[k] / sum) * (1 << precision));
  }
  return table;
}

uint8_t rounded(int64_t sum) { return static_cast<uint8_t>(std::clamp<int64_t>(sum >> precision, 0, 255)); }

}  // namespace

Picture resize(const Picture& picture, int height, int width) {
  if (height < 1 || width < 1 || height > 65535 || width > 65535)
    fail<InputError>("a picture cannot be resized to {}x{}; sizes go from 1 to 65535", width, height);
  const int channels = picture.channels;
  const Weights across = make_weights(picture.width, width), down = make_weights(picture.height, height);

  Picture rows{picture.height, width, channels, {}};
  rows.pixels.resize(static_cast<size_t>(picture.height) * width * channels);
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        const uint8_t* from =
            &picture.pixels[(static_cast<size_t>(y) * picture.width + across.first[x]) * channels + c];
        const int32_t* weight = &across.weights[static_cast<size_t>(x) * across.width];
        int64_t sum = int64_t{1} << (precision - 1);
        for (int k = 0; k < across.count[x]; ++k) sum += int64_t{from[k * channels]} * weight[k];
        rows.pixels[(static_cast<size_t>(y) * width + x) * channels + c] = rounded(sum);
      }

  Picture out{height, width, channels, {}};
  const size_t line = static_cast<size_t>(width) * channels;
  out.pixels.resize(height * line);
  for (int y = 0; y < height; ++y) {
    const int32_t* weight = &down.weights[static_cast<size_t>(y) * down.width];
    for (size_t i = 0; i < line; ++i) {
      int64_t sum = int64_t{1} << (precision - 1);
      for (int k = 0; k < down.count[y]; ++k)
        sum += int64_t{rows.pixels[(down.first[y] + k) * line + i]} * weight[k];
      out.pixels[y * line + i] = rounded(sum);
    }
  }
  return out;
}

}  // namespace millrace::data
