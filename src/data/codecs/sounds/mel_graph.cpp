#include "data/codecs/sounds/mel_graph.h"

namespace millrace::data {

Tensor log_mels(const Tensor& sounds, const MelOptions& options) {
  const MelSpectrogram judge(options);  // checks the options, and has the triangles
  const MelOptions& o = judge.options();
  Array window(f32, {o.window}), triangles(f32, {o.mels, o.fft / 2 + 1});
  judge.window(window.as<float>());
  judge.triangles(triangles.as<float>());
  const Tensor operands[] = {sounds, Tensor(std::move(window)), Tensor(std::move(triangles))};
  const Tensor power =
      apply("mel_spectrogram", operands, {{"fft", int64_t{o.fft}}, {"hop", int64_t{o.hop}}})[0];
  return reshape(log(maximum(power, 1e-10)), {sounds.dim(0), 1, o.mels, power.dim(2)});
}

}  // namespace millrace::data
