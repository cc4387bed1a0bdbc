// Files of sounds a second on one thread: decoded, resampled to 16 kHz, as log-mel spectrograms. `sounds
// FILE.tar`
#include <chrono>
#include <cstdio>
#include <vector>

#include <millrace/dataset.h>

#include "data/codecs/sounds/mel.h"
#include "data/codecs/sounds/sound.h"
#include "data/formats/open_dataset.h"

using namespace millrace::data;

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: sounds FILE\n"), 2;
  const auto dataset = open_dataset(argv[1]);
  size_t column = 0;
  while (column < dataset->columns().size() && dataset->columns()[column].kind != ColumnKind::audio) ++column;
  if (column == dataset->columns().size()) return std::fprintf(stderr, "no column of sounds\n"), 1;
  const auto time = [&](const char* what, auto&& body) {
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int64_t i = 0; i < dataset->count(); ++i) body(std::get<Bytes>(dataset->read(i, column)));
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::printf("%-40s %8.0f files/s\n", what, static_cast<double>(dataset->count()) / best);
  };
  Sound sound;
  std::vector<float> out;
  time("decode", [&](const Bytes& bytes) { (void)decode_sound(bytes.view(), sound); });
  MelSpectrogram own({.rate = 8000, .fft = 256, .window = 200, .hop = 80, .mels = 64});
  time("decode, log-mel 64 at 8 kHz", [&](const Bytes& bytes) {
    (void)decode_sound(bytes.view(), sound);
    mix_to_mono(sound);
    own.log_power(sound.samples, out);
  });
  MelSpectrogram twice({});
  time("decode, to 16 kHz, log-mel 80", [&](const Bytes& bytes) {
    (void)decode_sound(bytes.view(), sound);
    mix_to_mono(sound);
    resample(sound, 16'000);
    twice.log_power(sound.samples, out);
  });
  return 0;
}
