// Hostile WAV and FLAC files: what is decoded can be resampled and looked at, or it is said why not.
#include "data/codecs/sounds/sound.h"

#include <cstdlib>
#include <vector>

#include "data/codecs/sounds/mel.h"
#include "fuzz/fuzz.h"

using namespace millrace::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static MelSpectrogram mel({.rate = 8000, .fft = 64, .window = 64, .hop = 32, .mels = 8});
  Sound sound;
  SoundInfo info;
  const std::span bytes(data, size);
  (void)read_sound_info(bytes, info);
  if (!decode_sound(bytes, sound).empty()) return 0;
  if (sound.channels < 1 || sound.rate < 1 || sound.frames() < 1) std::abort();
  // Some formats pack silence very tightly.
  if (sound.samples.size() > 100'000) return 0;
  mix_to_mono(sound);
  resample(sound, 8000);
  std::vector<float> out;
  if (sound.frames() < 100'000) mel.log_power(sound.samples, out);
  return 0;
}
