#include "data/codecs/sounds/sound.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <sndfile.h>
#include <soxr.h>

#include "base/format.h"
#include "base/has_at.h"
#include "base/number_at.h"
#include "base/words.h"

namespace millrace::data {
namespace {

constexpr int64_t most_samples = int64_t{1} << 27;
constexpr int most_channels = 64, least_rate = 100, most_rate = 1'000'000;

/// The bytes as libsndfile reads them.
struct Memory {
  std::span<const uint8_t> bytes;
  sf_count_t at = 0;
};

SF_VIRTUAL_IO memory_io() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* user) {
    return static_cast<sf_count_t>(static_cast<Memory*>(user)->bytes.size());
  };
  io.seek = [](sf_count_t offset, int whence, void* user) {
    auto& memory = *static_cast<Memory*>(user);
    const auto size = static_cast<sf_count_t>(memory.bytes.size());
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? memory.at : size;
    // Not beyond the end, so that no sum overflows.
    if (offset >= -from && offset <= size - from) memory.at = from + offset;
    return memory.at;
  };
  io.read = [](void* to, sf_count_t count, void* user) {
    auto& memory = *static_cast<Memory*>(user);
    const sf_count_t size =
        std::clamp<sf_count_t>(count, 0, static_cast<sf_count_t>(memory.bytes.size()) - memory.at);
    if (size > 0) std::memcpy(to, memory.bytes.data() + memory.at, static_cast<size_t>(size));
    memory.at += size;
    return size;
  };
  io.write = [](const void*, sf_count_t, void*) -> sf_count_t { return 0; };
  io.tell = [](void* user) { return static_cast<Memory*>(user)->at; };
  return io;
}

struct Close {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using File = std::unique_ptr<SNDFILE, Close>;

/// Of a file of another format than those that are read.
std::string why_not_read(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return "it is empty";
  const bool frame = bytes.size() > 1 && bytes[0] == 0xff && (bytes[1] & 0xe6U) == 0xe2;  // layer III
  const char* const kind = has_at(bytes, 0, "ID3") || frame ? "MP3"
                           : has_at(bytes, 0, "OggS")       ? "Ogg"
                           : has_at(bytes, 0, "FORM")       ? "AIFF"
                           : has_at(bytes, 0, "RF64")       ? "RF64"
                           : has_at(bytes, 4, "ftyp")       ? "MPEG-4"
                                                            : "";
  if (*kind == 0) return "it is neither a WAV nor a FLAC file";
  return fmt::format("it is {}, and WAV and FLAC are read: convert it (ffmpeg -i FILE FILE.flac)", kind);
}

/// "" or why it cannot be opened.
std::string open_sound(Memory& memory, File& file, SF_INFO& info) {
  const auto bytes = memory.bytes;
  // libsndfile knows many more kinds; these are those that samples have, and the smaller door is the better
  // one.
  const bool wave = has_at(bytes, 0, "RIFF") && has_at(bytes, 8, "WAVE");
  if (!wave && !has_at(bytes, 0, "fLaC")) return why_not_read(bytes);
  if (wave) {
    // libsndfile takes what is there for the whole. Programs that write into a pipe leave 0 or the largest
    // number.
    const auto size = number_at<uint32_t>(bytes.data() + 4);
    if (size < 0x7fffff00 && bytes.size() + 1 < size + size_t{8})
      return fmt::format("it is cut off: {} of {} bytes", bytes.size(), size + size_t{8});
  }
  SF_VIRTUAL_IO io = memory_io();
  info = {};
  file.reset(sf_open_virtual(&io, SFM_READ, &info, &memory));
  if (!file) return fmt::format("it is damaged or of a kind that is not known ({})", sf_strerror(nullptr));
  const int kind = info.format & SF_FORMAT_TYPEMASK;
  if (kind != SF_FORMAT_WAV && kind != SF_FORMAT_WAVEX && kind != SF_FORMAT_FLAC) return why_not_read(bytes);
  if (info.samplerate < least_rate || info.samplerate > most_rate)
    return fmt::format("it is damaged: {} samples a second", info.samplerate);
  if (info.channels < 1 || info.channels > most_channels)
    return fmt::format("it is damaged: {} channels", info.channels);
  return {};
}

}  // namespace

bool is_sound_name(std::string_view name) {
  return has_ending(name,
                    {".wav", ".wave", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".m4a", ".aif", ".aiff"});
}

std::string sound_kind(int rate, int channels) {
  return channels == 1   ? fmt::format("{} Hz mono", rate)
         : channels == 2 ? fmt::format("{} Hz stereo", rate)
                         : fmt::format("{} Hz, {} channels", rate, channels);
}

std::string read_sound_info(std::span<const uint8_t> bytes, SoundInfo& info) {
  Memory memory{bytes};
  File file;
  SF_INFO found;
  if (std::string wrong = open_sound(memory, file, found); !wrong.empty()) return wrong;
  info = {found.samplerate, found.channels, std::max<int64_t>(found.frames, 0)};
  return {};
}

std::string decode_sound(std::span<const uint8_t> bytes, Sound& sound) {
  Memory memory{bytes};
  File file;
  SF_INFO info;
  if (std::string wrong = open_sound(memory, file, info); !wrong.empty()) return wrong;
  sound.rate = info.samplerate;
  sound.channels = info.channels;
  sound.samples.clear();
  // Memory grows with what is really there, whatever the header says.
  const sf_count_t step = 65'536;
  while (true) {
    const size_t before = sound.samples.size();
    if (static_cast<int64_t>(before) > most_samples)
      return fmt::format("it has more than {} samples; cut it into pieces", most_samples);
    sound.samples.resize(before + static_cast<size_t>(step * info.channels));
    const sf_count_t got = sf_readf_float(file.get(), sound.samples.data() + before, step);
    sound.samples.resize(before + static_cast<size_t>(std::max<sf_count_t>(got, 0) * info.channels));
    if (got < step) break;
  }
  if (sf_error(file.get()) != SF_ERR_NO_ERROR)
    return fmt::format("it is damaged ({})", sf_strerror(file.get()));
  if (info.frames != SF_COUNT_MAX && sound.frames() < info.frames)
    return fmt::format("it is cut off: {} of {} frames", sound.frames(), info.frames);
  if (sound.samples.empty()) return "it has no samples";
  // Floats in a file may be anything.
  for (const float sample : sound.samples)
    if (!std::isfinite(sample)) return "it is damaged: a sample is no finite number";
  return {};
}

void mix_to_mono(Sound& sound) {
  if (sound.channels <= 1) return;
  const auto channels = static_cast<size_t>(sound.channels), frames = static_cast<size_t>(sound.frames());
  for (size_t i = 0; i < frames; ++i) {
    float sum = 0;
    for (size_t c = 0; c < channels; ++c) sum += sound.samples[i * channels + c];
    sound.samples[i] = sum / static_cast<float>(channels);
  }
  sound.samples.resize(frames);
  sound.channels = 1;
}

void resample(Sound& sound, int rate) {
  if (rate < least_rate || rate > most_rate)
    fail<InputError>("a rate of {} samples a second: give {} to {}", rate, least_rate, most_rate);
  if (rate == sound.rate || sound.samples.empty()) {
    sound.rate = rate;
    return;
  }
  const auto channels = static_cast<size_t>(sound.channels);
  const auto frames =
      static_cast<size_t>(std::llround(static_cast<double>(sound.frames()) * rate / sound.rate));
  if (frames == 0) {  // which libsoxr does not survive
    sound.samples.clear();
    sound.rate = rate;
    return;
  }
  // With room for just these libsoxr stops at some lengths before it has given the end.
  std::vector<float> out((frames + 1) * channels);
  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
  size_t used = 0, made = 0;
  const soxr_error_t error = soxr_oneshot(sound.rate, rate, static_cast<unsigned>(channels),
                                          sound.samples.data(), static_cast<size_t>(sound.frames()), &used,
                                          out.data(), frames + 1, &made, &io, &quality, &runtime);
  if (error) fail<InternalError>("a sound cannot be resampled from {} to {}: {}", sound.rate, rate, error);
  out.resize(std::min(made, frames) * channels);
  out.resize(frames * channels);  // silence, should there be fewer
  sound.samples = std::move(out);
  sound.rate = rate;
}

}  // namespace millrace::data
