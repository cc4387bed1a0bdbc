#include "data/codecs/sounds/mel_graph.h"

#include <cmath>
#include <numbers>

#include "ops/build.h"

namespace millrace::data {
namespace {

/// Windows times cosines, then times sines: [2 · bins, 1, 1, window].
Array spectrum_weights(const MelOptions& o) {
  const int64_t bins = o.fft / 2 + 1, margin = (o.fft - o.window) / 2;
  Array weights(f32, {2 * bins, 1, 1, o.window});
  const auto to = weights.as<float>();
  for (int64_t k = 0; k < bins; ++k)
    for (int64_t i = 0; i < o.window; ++i) {
      const double window =
          static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / o.window));
      const auto turn = static_cast<double>(k * (margin + i) % o.fft) / o.fft;
      to[static_cast<size_t>(k * o.window + i)] =
          static_cast<float>(window * std::cos(2 * std::numbers::pi * turn));
      to[static_cast<size_t>((bins + k) * o.window + i)] =
          static_cast<float>(window * std::sin(2 * std::numbers::pi * turn));
    }
  return weights;
}

millrace::Value convolve(Graph& graph, millrace::Value x, Array weights, int64_t stride, int64_t left,
                         int64_t right) {
  return graph.add("conv2d", {x, graph.constant(std::move(weights))},
                   {{"strides", std::vector<int64_t>{1, stride}},
                    {"pads", std::vector<int64_t>{0, left, 0, right}},
                    {"dilations", std::vector<int64_t>{1, 1}},
                    {"groups", int64_t{1}}});
}

}  // namespace

millrace::Value log_mels(Graph& graph, millrace::Value sounds, const MelOptions& options) {
  MelOptions o = options;
  const MelSpectrogram judge(o);  // checks the options, and has the triangles
  o = judge.options();
  ops::Build b(graph);
  const Shape& shape = b.shape(sounds);
  const Dim batch = shape[0];
  const int64_t samples = shape[1].size(), bins = o.fft / 2 + 1, frames = judge.frames(samples);
  // A window is centred on its frame's beginning: zeros around the sound, but not what the window leaves out of a frame.
  const int64_t left = o.fft / 2 - (o.fft - o.window) / 2, right = o.window - left;
  const millrace::Value wave = b.reshape(sounds, {batch, 1, 1, samples});
  const millrace::Value spectra =
      b.unary("square", convolve(graph, wave, spectrum_weights(o), o.hop, left, right));
  const auto half = [&](int64_t from) {
    return graph.add("slice", {spectra},
                     {{"starts", std::vector<int64_t>{0, from, 0, 0}},
                      {"ends", std::vector<int64_t>{INT64_MAX, from + bins, INT64_MAX, INT64_MAX}}});
  };
  const millrace::Value power = b.add(half(0), half(bins));
  Array triangles(f32, {o.mels, bins, 1, 1});
  judge.triangles(triangles.as<float>());
  const millrace::Value mels = convolve(graph, power, std::move(triangles), 1, 0, 0);
  const millrace::Value loud = b.binary("maximum", mels, b.scalar(f32, 1e-10f));
  return b.reshape(b.unary("log", loud), {batch, 1, o.mels, frames});
}

Tensor log_mels(const Tensor& sounds, const MelOptions& options) {
  MelOptions o = options;
  const MelSpectrogram judge(o);  // checks the options, and has the triangles
  o = judge.options();
  const Dim batch = sounds.dim(0);
  const int64_t samples = sounds.dim(1).size(), bins = o.fft / 2 + 1, frames = judge.frames(samples);
  // A window is centred on its frame's beginning: zeros around the sound, but not what the window leaves out of a frame.
  const int64_t left = o.fft / 2 - (o.fft - o.window) / 2, right = o.window - left;
  const Tensor wave = reshape(sounds, {batch, 1, 1, samples});
  Conv2dOptions hops;
  hops.strides = {1, o.hop};
  hops.pads = {0, left, 0, right};
  const Tensor parts = conv2d(wave, Tensor(spectrum_weights(o)), {}, hops);
  const Tensor squares = millrace::apply("square", std::span(&parts, 1))[0];
  const Tensor power = slice(squares, 1, 0, bins) + slice(squares, 1, bins, 2 * bins);
  Array triangles(f32, {o.mels, bins, 1, 1});
  judge.triangles(triangles.as<float>());
  const Tensor mels = conv2d(power, Tensor(std::move(triangles)));
  return reshape(log(maximum(mels, 1e-10)), {batch, 1, o.mels, frames});
}

}  // namespace millrace::data
