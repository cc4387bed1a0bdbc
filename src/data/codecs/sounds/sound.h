// Decoded sounds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::data {

/// Samples in memory, within -1…1, channels together: frame by frame.
struct Sound {
  int rate = 0;  // frames a second
  int channels = 0;
  std::vector<float> samples;

  int64_t frames() const { return channels == 0 ? 0 : static_cast<int64_t>(samples.size()) / channels; }
  double seconds() const { return rate == 0 ? 0 : static_cast<double>(frames()) / rate; }
};

/// What the header of a sound says; a damaged one may lie about frames.
struct SoundInfo {
  int rate = 0, channels = 0;
  int64_t frames = 0;
};

/// Decodes a WAV file (PCM of 8 to 32 bits, floats, A-law, µ-law, ADPCM) or a FLAC file from memory into
/// `sound`, whose memory is reused. Returns "" or the reason why the bytes are no good sound: then `sound` is
/// unspecified. At most 2^27 samples.
[[nodiscard]] std::string decode_sound(std::span<const uint8_t> bytes, Sound& sound);
/// The same of the header alone.
[[nodiscard]] std::string read_sound_info(std::span<const uint8_t> bytes, SoundInfo& info);

/// For people: "8000 Hz mono", "44100 Hz stereo", "48000 Hz, 6 channels".
std::string sound_kind(int rate, int channels);

/// True for the file names that sounds have (.wav, .flac; .mp3 … that may hold what is decoded), in any case.
bool is_sound_name(std::string_view name);

/// One channel: the mean of all.
void mix_to_mono(Sound& sound);
/// To another rate (100 Hz … 1 MHz), each channel, by libsoxr's high quality: a filter of linear phase, flat
/// up to 91 % of half the lower rate; round(frames · rate / sound.rate) frames come out.
void resample(Sound& sound, int rate);

}  // namespace millrace::data
