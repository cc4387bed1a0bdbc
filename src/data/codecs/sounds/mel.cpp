#include "data/codecs/sounds/mel.h"

#include <algorithm>
#include <cmath>
#include <kiss_fftr.h>
#include <numbers>

#include "base/format.h"

namespace millrace::data {
namespace {

double to_mel(double hertz, bool htk) {
  if (htk) return 2595.0 * std::log10(1.0 + hertz / 700.0);
  const double linear = hertz / (200.0 / 3);
  return hertz < 1000.0 ? linear : 15.0 + std::log(hertz / 1000.0) / (std::log(6.4) / 27.0);
}

double to_hertz(double mel, bool htk) {
  if (htk) return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0);
  return mel < 15.0 ? mel * (200.0 / 3) : 1000.0 * std::exp((mel - 15.0) * (std::log(6.4) / 27.0));
}

/// A triangle over the bins that are not zero.
struct Filter {
  size_t first = 0;
  std::vector<float> weights;
};

}  // namespace

struct MelSpectrogram::State {
  struct Free {
    void operator()(kiss_fftr_state* plan) const { kiss_fftr_free(plan); }
  };
  std::unique_ptr<kiss_fftr_state, Free> plan;
  std::vector<float> window, padded, frame, spectrum;
  std::vector<kiss_fft_cpx> bins;
  std::vector<Filter> filters;
};

MelSpectrogram::MelSpectrogram(const MelOptions& options)
    : options_(options), state_(std::make_unique<State>()) {
  const MelOptions& o = options;
  if (options_.highest == 0) options_.highest = o.rate / 2.0;
  if (o.fft < 2 || o.fft > 1 << 20 || o.fft % 2 != 0)
    fail<InputError>("a spectrogram of {} samples a frame: give an even number from 2 to 1048576", o.fft);
  if (o.window < 1 || o.window > o.fft)
    fail<InputError>("a window of {} samples does not fit into frames of {}", o.window, o.fft);
  if (o.hop < 1 || o.mels < 1 || o.mels > 4096)
    fail<InputError>("a spectrogram of {} mels every {} samples cannot be; give 1 to 4096, and 1 or more",
                     o.mels, o.hop);
  if (!(o.lowest >= 0 && o.lowest < options_.highest && options_.highest <= o.rate / 2.0))
    fail<InputError>("mels from {} to {} Hz: give frequencies from 0 to {}, half the rate", o.lowest,
                     options_.highest, o.rate / 2.0);
  State& s = *state_;
  s.plan.reset(kiss_fftr_alloc(o.fft, 0, nullptr, nullptr));
  if (!s.plan) fail<InternalError>("no plan for a transform of {} samples", o.fft);
  s.window.assign(static_cast<size_t>(o.fft), 0.0f);
  const auto margin = static_cast<size_t>((o.fft - o.window) / 2);
  for (int i = 0; i < o.window; ++i)
    s.window[margin + static_cast<size_t>(i)] =
        static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / o.window));
  const auto bins = static_cast<size_t>(o.fft / 2 + 1);
  s.frame.resize(static_cast<size_t>(o.fft));
  s.bins.resize(bins);

  std::vector<double> edges;
  const double low = to_mel(o.lowest, o.htk), high = to_mel(options_.highest, o.htk);
  for (int m = 0; m < o.mels + 2; ++m)
    edges.push_back(to_hertz(low + (high - low) * m / (o.mels + 1), o.htk));
  for (int m = 0; m < o.mels; ++m) {
    const double left = edges[static_cast<size_t>(m)], centre = edges[static_cast<size_t>(m) + 1],
                 right = edges[static_cast<size_t>(m) + 2];
    Filter filter;
    for (size_t k = 0; k < bins; ++k) {
      const double hertz = static_cast<double>(k) * o.rate / o.fft;
      const double weight = std::min((hertz - left) / (centre - left), (right - hertz) / (right - centre));
      if (weight <= 0) continue;
      if (filter.weights.empty()) filter.first = k;
      filter.weights.push_back(static_cast<float>(weight * 2.0 / (right - left)));
    }
    s.filters.push_back(std::move(filter));
  }
}

MelSpectrogram::~MelSpectrogram() = default;

void MelSpectrogram::window(std::span<float> out) const {
  std::copy_n(state_->window.begin() + (options_.fft - options_.window) / 2, options_.window, out.begin());
}

void MelSpectrogram::triangles(std::span<float> out) const {
  const size_t bins = state_->bins.size();
  std::fill(out.begin(), out.end(), 0.0f);
  for (size_t m = 0; m < state_->filters.size(); ++m) {
    const Filter& filter = state_->filters[m];
    std::copy(filter.weights.begin(), filter.weights.end(), out.begin() + m * bins + filter.first);
  }
}

void MelSpectrogram::power(std::span<const float> mono, std::vector<float>& out) {
  State& s = *state_;
  const auto fft = static_cast<size_t>(options_.fft), hop = static_cast<size_t>(options_.hop),
             mels = static_cast<size_t>(options_.mels);
  const auto count = static_cast<size_t>(frames(static_cast<int64_t>(mono.size())));
  s.padded.assign(mono.size() + fft, 0.0f);
  std::copy(mono.begin(), mono.end(), s.padded.begin() + static_cast<int64_t>(fft / 2));
  // Frame by frame, and turned at the end: a row of the result is a mel.
  s.spectrum.resize(count * mels);
  std::vector<float> squares(s.bins.size());
  for (size_t f = 0; f < count; ++f) {
    const float* from = s.padded.data() + f * hop;
    for (size_t i = 0; i < fft; ++i) s.frame[i] = from[i] * s.window[i];
    kiss_fftr(s.plan.get(), s.frame.data(), s.bins.data());
    for (size_t k = 0; k < squares.size(); ++k)
      squares[k] = s.bins[k].r * s.bins[k].r + s.bins[k].i * s.bins[k].i;
    for (size_t m = 0; m < mels; ++m) {
      const Filter& filter = s.filters[m];
      float sum = 0;
      for (size_t k = 0; k < filter.weights.size(); ++k) sum += filter.weights[k] * squares[filter.first + k];
      s.spectrum[f * mels + m] = sum;
    }
  }
  out.resize(count * mels);
  for (size_t f = 0; f < count; ++f)
    for (size_t m = 0; m < mels; ++m) out[m * count + f] = s.spectrum[f * mels + m];
}

void MelSpectrogram::log_power(std::span<const float> mono, std::vector<float>& out) {
  power(mono, out);
  for (float& value : out) value = std::log(std::max(value, 1e-10f));
}

}  // namespace millrace::data
