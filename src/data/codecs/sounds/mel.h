// Mel spectrograms, as librosa 0.11 makes them (librosa.feature.melspectrogram): a periodic Hann window,
// centred in frames of `fft` samples that begin every `hop` samples and are centred on them (zeros around the
// sound), the power of their spectrum, and triangles of equal area over it (norm="slaney") at centres that
// are equally far from each other on the mel scale: Slaney's (linear below 1,000 Hz), or HTK's with `htk`
// (Young et al., The HTK Book: 2595 log10(1 + f / 700)).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace millrace::data {

struct MelOptions {
  int rate = 16'000;
  int fft = 512;     // even
  int window = 400;  // ≤ fft
  int hop = 160;
  int mels = 80;
  double lowest = 0, highest = 0;  // Hz; highest 0: half the rate
  bool htk = false;
};

/// Keeps its memory: one for each thread.
class MelSpectrogram {
 public:
  /// InputError when the options do not go together.
  explicit MelSpectrogram(const MelOptions& options);
  ~MelSpectrogram();
  MelSpectrogram(const MelSpectrogram&) = delete;
  MelSpectrogram& operator=(const MelSpectrogram&) = delete;

  const MelOptions& options() const { return options_; }
  /// The window, options().window numbers.
  void window(std::span<float> out) const;
  /// The weights of the triangles, [mels, fft / 2 + 1].
  void triangles(std::span<float> out) const;
  /// 1 + samples / hop.
  int64_t frames(int64_t samples) const { return 1 + samples / options_.hop; }
  /// Power [mels, frames(mono.size())] of a sound of one channel and options().rate.
  void power(std::span<const float> mono, std::vector<float>& out);
  /// Its natural logarithm, of at least 1e-10: librosa's power_to_db(…, top_db=None) times ln(10) / 10.
  void log_power(std::span<const float> mono, std::vector<float>& out);

 private:
  struct State;
  MelOptions options_;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::data
