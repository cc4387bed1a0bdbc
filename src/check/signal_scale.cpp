// How large activations and gradients are from layer to layer.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"

namespace millrace::check {
namespace {

/// What is odd about the results of one layer.
struct LayerState {
  const Signal* signal;
  double size = 0;  // root mean square
  double dead = 0;  // share of units that are 0 for every sample
  double flow =
      0;  // size of the gradient times that of the value: of no unit, the same everywhere in a chain
  bool finite = true;
  bool saturated = false;
};

/// Of [rows, units] or [rows, channels, height, width] (or [rows, places, units], where each is a unit).
double dead_share(const Array& value) {
  const auto& shape = value.shape();
  const bool channels = shape.rank() == 4;
  const int64_t units = channels ? shape[1].size() : shape.back().size();
  int64_t inner = 1;
  if (channels) inner = shape[2].size() * shape[3].size();
  std::vector<char> lives(static_cast<size_t>(units), 0);
  const auto x = value.as<float>();
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] > 0) lives[(i / static_cast<size_t>(inner)) % static_cast<size_t>(units)] = 1;
  return static_cast<double>(std::count(lives.begin(), lives.end(), 0)) / static_cast<double>(units);
}

/// Nearly all elements at an end of a bounded activation's range.
bool is_saturated(const Array& value) {
  const auto x = value.as<float>();
  int64_t high = 0, low = 0, zero = 0;
  for (const float v : x) {
    if (std::abs(v) > 1.0F) return false;
    high += v > 0.999F;
    low += v < -0.999F;
    zero += std::abs(v) < 1e-3F;
  }
  const auto count = static_cast<double>(x.size());
  return high > 0 && (static_cast<double>(high + low) > 0.95 * count ||
                      (low == 0 && zero < static_cast<int64_t>(0.9 * count) &&
                       static_cast<double>(high + zero) > 0.95 * count));
}

LayerState state_of(const Signal& signal) {
  LayerState state{&signal};
  state.size = rms(signal.value);
  const auto count = std::sqrt(static_cast<double>(signal.value.count()));
  state.flow = state.size * count * rms(signal.gradient) * count;
  state.finite = std::isfinite(state.size) && std::isfinite(state.flow);
  if (!state.finite) return state;
  if (signal.rectified) state.dead = dead_share(signal.value);
  state.saturated = is_saturated(signal.value);
  return state;
}

Finding judge_values(const std::vector<LayerState>& layers, double largest) {
  for (const LayerState& layer : layers) {
    const std::string& name = layer.signal->name;
    if (!layer.finite)
      return failed(fmt::format("{} gives numbers that are not finite", name),
                    "look for a division, logarithm or exponential in it, and for weights that are far too "
                    "large");
    if (layer.dead > 0.9)
      return failed(fmt::format("{}: {} of the units are 0 for every sample", name, share_text(layer.dead)),
                    "units that are off have no gradient and stay off: draw smaller biases, scale the "
                    "inputs to a mean near 0, or take a leaky activation");
  }
  for (const LayerState& layer : layers) {
    const std::string& name = layer.signal->name;
    if (layer.size > 1e4)
      return failed(fmt::format("{} gives numbers of about {}", name, short_number(layer.size)),
                    "scale the inputs (mean 0, deviation 1), draw weights by fan-in, or put a norm between "
                    "layers");
    if (layer.dead > 0.6 || layer.saturated)
      return warned(
          layer.saturated
              ? fmt::format("{}: nearly all of its results are at the ends of its range", name)
              : fmt::format("{}: {} of the units are 0 for every sample", name, share_text(layer.dead)),
          "gradients hardly come through: draw smaller weights, or scale the inputs");
  }
  for (const LayerState& layer : layers)
    if (layer.size > 0 && layer.size < 1e-5 * std::min(largest, 1.0))
      return warned(
          fmt::format("{} gives numbers of about {} only", layer.signal->name, short_number(layer.size)),
          "draw weights by fan-in, scale the inputs, or put a norm between layers");
  return passed(fmt::format("{} layers, results up to {} in size", layers.size(), short_number(largest)));
}

Finding judge_gradients(const std::vector<LayerState>& layers) {
  // A head that begins at zero lets no gradient through yet.
  std::vector<const LayerState*> with;
  for (const LayerState& layer : layers)
    if (layer.flow > 0) with.push_back(&layer);
  if (with.size() < 3) return passed("too few layers to compare gradients");
  const LayerState &first = *with.front(), &last = *with.back();
  const double ratio = first.flow / last.flow;
  const std::string saw = fmt::format("gradients at {} are {} times those at {}", first.signal->name,
                                      short_number(ratio), last.signal->name);
  if (ratio < 1e-7)
    return failed(saw,
                  "they vanish on the way: draw weights by fan-in, take ReLU for sigmoid, add residual "
                  "connections or norms");
  if (ratio < 1e-4)
    return warned(saw,
                  "they shrink on the way: draw weights by fan-in, or add residual connections or norms");
  if (ratio > 1e6)
    return failed(saw, "they explode on the way: draw smaller weights, add norms, or clip (train.clip_norm)");
  if (ratio > 1e4)
    return warned(saw, "they grow on the way: draw smaller weights, or clip (train.clip_norm)");
  return passed(saw);
}

/// Does a layer give zeros because its weights begin at zero?
bool zero_by_weights(const std::vector<Signal>& signals, const std::string& layer) {
  return std::any_of(signals.begin(), signals.end(), [&](const Signal& signal) {
    return signal.parameter && signal.name.starts_with(layer + ".") && rms(signal.value) == 0 &&
           !signal.name.ends_with("bias");
  });
}

Finding run_signal_scale(Context& context) {
  std::vector<LayerState> layers;
  double largest = 0;
  bool zeros = false;  // what comes behind weights that begin at zero is 0 by intent
  for (const Signal& signal : context.signals())
    if (!signal.parameter) {
      layers.push_back(state_of(signal));
      LayerState& layer = layers.back();
      zeros = zeros || (layer.size == 0 && zero_by_weights(context.signals(), signal.name));
      if (zeros && layer.size == 0) layer.dead = 0;
      largest = std::max(largest, layer.size);
    }
  if (layers.empty()) return not_for("the model has no layers with a result for each sample");
  return with_numbers(worse(judge_values(layers, largest), judge_gradients(layers)),
                      {{"layers", layers.size()}, {"largest", largest}});
}

}  // namespace

MILLRACE_CHECK_KIND(signal_scale){
    .name = "signal-scale",
    .doc = "activations and gradients by layer: dead units, numbers that explode or vanish",
    .matters =
        "layers whose numbers grow or shrink by orders of magnitude learn at rates that no one learning rate "
        "suits; units that are 0 for every sample never come back",
    .place = 230,
    .run = run_signal_scale,
};

}  // namespace millrace::check
