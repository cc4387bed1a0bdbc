#include <cmath>
#include <numbers>

#include "base/format.h"
#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> mel_types(const TypeContext& c) {
  const Type &sounds = c.operands[0], &window = c.operands[1], &triangles = c.operands[2];
  const int64_t fft = c.attributes.integer("fft"), hop = c.attributes.integer("hop");
  if (sounds.dtype != f32 && sounds.dtype != f64) c.error("sounds are f32 or f64");
  if (window.dtype != sounds.dtype || triangles.dtype != sounds.dtype)
    c.error("all operands must have the same dtype");
  if (sounds.shape.rank() != 2 || !sounds.shape[1].is_static())
    c.error("sounds are [batch, samples], and samples is a number");
  if (fft % 2 != 0) c.error("fft must be even");
  if (window.shape.rank() != 1 || !window.shape.is_static() || window.shape[0].size() < 1 ||
      window.shape[0].size() > fft)
    c.error("the window must be [1 to fft]");
  if (triangles.shape.rank() != 2 || !triangles.shape.is_static() || triangles.shape[1].size() != fft / 2 + 1)
    c.error(fmt::format("triangles must be [mels, {}]", fft / 2 + 1));
  return {{sounds.dtype, {sounds.shape[0], triangles.shape[0], 1 + sounds.shape[1].size() / hop}}};
}

/// Cosines, then sines, of the places in a window: [2 · bins, 1, 1, window].
Array turns(DType dtype, int64_t fft, int64_t window) {
  const int64_t bins = fft / 2 + 1;
  Array array(dtype, {2 * bins, 1, 1, window});
  for (int64_t k = 0; k < bins; ++k)
    for (int64_t i = 0; i < window; ++i) {
      const double turn = 2 * std::numbers::pi * static_cast<double>(k * i % fft) / static_cast<double>(fft);
      array.set(k * window + i, std::cos(turn));
      array.set((bins + k) * window + i, std::sin(turn));
    }
  return array;
}

/// A convolution takes windows and their spectra (the Fourier transform is a product with cosines and sines),
/// another one the triangles.
std::vector<Value> mel_body(Graph& graph, std::span<const Value> x, const Attributes& attributes) {
  ops::Build b(graph);
  const int64_t fft = attributes.integer("fft"), hop = attributes.integer("hop"), bins = fft / 2 + 1;
  const Shape& shape = b.shape(x[0]);
  const Dim batch = shape[0];
  const int64_t samples = shape[1].size(), window = b.shape(x[1])[0].size(), mels = b.shape(x[2])[0].size();
  const auto convolve = [&](Value from, Value weights, int64_t stride, int64_t left, int64_t right) {
    return graph.add("conv2d", {from, weights},
                     {{"strides", std::vector<int64_t>{1, stride}},
                      {"pads", std::vector<int64_t>{0, left, 0, right}},
                      {"dilations", std::vector<int64_t>{1, 1}},
                      {"groups", int64_t{1}}});
  };
  // A window is centred on its frame's beginning: zeros around the sound, but not what it leaves out of a
  // frame.
  const int64_t left = fft / 2 - (fft - window) / 2, right = window - left;
  const Value weights = b.mul(graph.constant(turns(b.dtype(x[0]), fft, window)), x[1]);
  const Value squares =
      b.unary("square", convolve(b.reshape(x[0], {batch, 1, 1, samples}), weights, hop, left, right));
  const auto half = [&](int64_t from) {
    return graph.add("slice", {squares},
                     {{"starts", std::vector<int64_t>{0, from, 0, 0}},
                      {"ends", std::vector<int64_t>{INT64_MAX, from + bins, INT64_MAX, INT64_MAX}}});
  };
  const Value result = convolve(b.add(half(0), half(bins)), b.reshape(x[2], {mels, bins, 1, 1}), 1, 0, 0);
  return {b.reshape(result, {batch, mels, 1 + samples / hop})};
}

}  // namespace

MILLRACE_OPERATOR(mel_spectrogram) {
  Operator op;
  op.name = "mel_spectrogram";
  op.op_class = OpClass::composite;
  op.doc =
      "sounds [batch, samples], window [up to fft], triangles [mels, fft / 2 + 1]: the power of the spectrum "
      "of each frame, summed "
      "by the triangles, [batch, mels, 1 + samples / hop]. Frames of fft samples begin every hop samples and "
      "are centred "
      "there, the window in their middle; around the sound are zeros.";
  op.min_operands = op.max_operands = 3;
  op.attributes = {{"fft", AttributeType::integer, "samples of a frame, even", {.low = 2, .high = 1 << 20}},
                   {"hop", AttributeType::integer, "samples from a frame to the next", {.low = 1}}};
  op.types = mel_types;
  op.body = mel_body;
  // Of the fast transform, that kernels use.
  op.flops = [](const Graph&, const Node& node) {
    const auto fft = static_cast<double>(node.attributes.integer("fft"));
    const auto& shape = node.types[0].shape;
    return static_cast<double>(shape[0].size() * shape[2].size()) * (2.5 * fft * std::log2(fft) + 3.5 * fft);
  };
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-10};
  const auto sample = [&](DType dtype, const Shape& sounds, int64_t fft, int64_t window, int64_t hop,
                          int64_t mels) {
    op.samples.push_back({.operands = {{dtype, sounds}, {dtype, {window}}, {dtype, {mels, fft / 2 + 1}}},
                          .attributes = {{"fft", fft}, {"hop", hop}},
                          .low = -0.5,
                          .high = 0.5});
  };
  sample(f32, {2, 37}, 16, 13, 5, 3);
  sample(f32, {3, 200}, 32, 32, 7, 4);
  sample(f32, {1, 40}, 12, 11, 4, 2);
  sample(f32, {1, 5}, 8, 6, 20, 1);
  sample(f32, {2, 9}, 2, 1, 3, 2);
  sample(f32, {5, 3}, 4, 4, 1, 2);
  sample(f32, {0, 8}, 8, 8, 2, 2);
  sample(f64, {2, 11}, 8, 7, 3, 2);
  return op;
}
