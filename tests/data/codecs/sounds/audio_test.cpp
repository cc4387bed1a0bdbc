#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <numbers>
#include <numeric>
#include <set>

#include <millrace/error.h>
#include <millrace/tensor.h>

#include "data/augment/spec_augment.h"
#include "data/codecs/sounds/mel.h"
#include "data/codecs/sounds/mel_graph.h"
#include "data/codecs/sounds/sound.h"
#include "support/refusal.h"

using namespace millrace;
using namespace millrace::data;

namespace {

struct SoundCase {
  const char* name;
  int rate, channels;
  const char* file;
  std::vector<float> samples;
};
struct MelCase {
  int count;
  MelOptions options;
  std::vector<float> power;
};
struct ResampleCase {
  int count, rate, to;
  std::vector<float> samples;
};

#include "audio_values.inc"

/// As tools/reference_values_audio.py makes it.
std::vector<float> signal(int count, int rate) {
  std::vector<float> x;
  for (int n = 0; n < count; ++n) {
    const double i = n;
    x.push_back(static_cast<float>(0.5 * std::sin(2 * std::numbers::pi * (300 + 0.3 * i) * i / rate) +
                                   0.2 * (std::fmod(i * 7919, 1000) / 1000 - 0.5)));
  }
  return x;
}

std::vector<uint8_t> bytes_of(const char* hex) {
  std::vector<uint8_t> bytes;
  for (; hex[0] != 0; hex += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(hex, 2), nullptr, 16)));
  return bytes;
}

}  // namespace

TEST_CASE("sounds are decoded as libsndfile's own users decode them") {
  for (const SoundCase& wanted : sound_cases) {
    CAPTURE(std::string(wanted.name));
    const auto bytes = bytes_of(wanted.file);
    Sound sound;
    REQUIRE(decode_sound(bytes, sound) == "");
    CHECK(sound.rate == wanted.rate);
    CHECK(sound.channels == wanted.channels);
    REQUIRE(sound.samples.size() == wanted.samples.size());
    for (size_t i = 0; i < sound.samples.size(); ++i)
      CHECK(std::abs(sound.samples[i] - wanted.samples[i]) < 1e-6f);
    SoundInfo info;
    REQUIRE(read_sound_info(bytes, info) == "");
    CHECK(info.frames == sound.frames());
    CHECK(info.rate == wanted.rate);
  }
}

TEST_CASE("sounds that are cut or none are refused with the reason") {
  Sound sound;
  for (const SoundCase& whole : sound_cases) {
    CAPTURE(std::string(whole.name));
    auto bytes = bytes_of(whole.file);
    // The last byte may be what fills up.
    for (size_t size = 0; size + 1 < bytes.size(); size += 7) {
      CHECK(decode_sound(std::span(bytes).first(size), sound) != "");
    }
  }
  const std::string text = "RIFX no sound at all";
  CHECK(decode_sound(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()), sound) ==
        "it is neither a WAV nor a FLAC file");
  for (const auto& [begin, kind] :
       std::vector<std::pair<std::string, std::string>>{{"ID3\x04", "MP3"},
                                                        {"\xff\xfb\x90", "MP3"},
                                                        {"OggS", "Ogg"},
                                                        {"FORM", "AIFF"},
                                                        {"    ftypM4A ", "MPEG-4"}})
    CHECK(decode_sound(std::span(reinterpret_cast<const uint8_t*>(begin.data()), begin.size()), sound) ==
          "it is " + kind + ", and WAV and FLAC are read: convert it (ffmpeg -i FILE FILE.flac)");
  CHECK(decode_sound({}, sound) == "it is empty");
  // A float that is no number.
  auto bytes = bytes_of(sound_cases[3].file);
  std::fill(bytes.end() - 4, bytes.end(), uint8_t{0xff});
  CHECK(decode_sound(bytes, sound).find("no finite number") != std::string::npos);
}

TEST_CASE("several channels become their mean") {
  Sound sound{8000, 2, {0.5f, 0.25f, -1, 1, 0.125f, 0}};
  mix_to_mono(sound);
  CHECK(sound.channels == 1);
  CHECK(sound.samples == std::vector<float>{0.375f, 0, 0.0625f});
}

TEST_CASE("resampled as libsoxr's own users do, and a tone stays a tone") {
  for (const ResampleCase& wanted : resample_cases) {
    Sound sound{wanted.rate, 1, signal(wanted.count, wanted.rate)};
    resample(sound, wanted.to);
    CHECK(sound.rate == wanted.to);
    REQUIRE(sound.samples.size() == wanted.samples.size());
    for (size_t i = 0; i < sound.samples.size(); ++i)
      CHECK(std::abs(sound.samples[i] - wanted.samples[i]) < 1e-5f);
  }
  // Two channels are two tones, and each stays its own.
  Sound sound{8000, 2, {}};
  for (int i = 0; i < 4000; ++i)
    for (const double hertz : {440.0, 1000.0})
      sound.samples.push_back(static_cast<float>(std::sin(2 * std::numbers::pi * hertz * i / 8000)));
  resample(sound, 22050);
  CHECK(sound.frames() == 11025);
  for (int64_t i = 1000; i < 10000; ++i)
    for (const auto& [channel, hertz] : {std::pair{0, 440.0}, std::pair{1, 1000.0}})
      CHECK(std::abs(sound.samples[static_cast<size_t>(2 * i + channel)] -
                     std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / 22050)) < 1e-3);
  Sound one{466'752, 1, {0.5f}};
  resample(one, 8000);
  CHECK(one.frames() == 0);
  CHECK_THROWS_WITH_AS(resample(sound, 1), doctest::Contains("give 100 to"), InputError);
}

TEST_CASE("resampled sounds of any length are there to their end") {
  for (const auto& [rate, to] : {std::pair{44100, 8000}, {44100, 16000}, {48000, 16000}, {16000, 44100}})
    for (int64_t count = 1500; count < 16000; count += count < 3100 ? 1 : 211) {
      Sound sound{rate, 1, std::vector<float>(static_cast<size_t>(count), 0.5f)};
      resample(sound, to);
      CAPTURE(count);
      REQUIRE(sound.frames() == std::llround(static_cast<double>(count) * to / rate));
      REQUIRE(sound.samples[sound.samples.size() / 2] == doctest::Approx(0.5).epsilon(0.01));
      REQUIRE(std::accumulate(sound.samples.end() - 20, sound.samples.end(), 0.0f) > 8);
    }
}

TEST_CASE("mel spectrograms are librosa's") {
  for (const MelCase& wanted : mel_cases) {
    CAPTURE(wanted.options.rate);
    MelSpectrogram mel(wanted.options);
    std::vector<float> power, again;
    const auto x = signal(wanted.count, wanted.options.rate);
    mel.power(x, power);
    REQUIRE(power.size() == wanted.power.size());
    CHECK(static_cast<int64_t>(power.size()) == wanted.options.mels * mel.frames(wanted.count));
    const float most = *std::max_element(power.begin(), power.end());
    for (size_t i = 0; i < power.size(); ++i)
      CHECK(std::abs(power[i] - wanted.power[i]) <= 1e-4f * wanted.power[i] + 1e-6f * most);
    mel.log_power(x, again);
    CHECK(again[5] == std::log(std::max(power[5], 1e-10f)));
  }
  MelSpectrogram mel({});
  std::vector<float> silence;
  mel.log_power({}, silence);
  CHECK(silence == std::vector<float>(80, std::log(1e-10f)));
}

TEST_CASE("mel spectrograms that cannot be are refused") {
  const auto refusal = [](MelOptions options) {
    return testing::refusal([&] { MelSpectrogram mel(options); });
  };
  CHECK(refusal({.fft = 401}).find("even number") != std::string::npos);
  CHECK(refusal({.fft = 256, .window = 400}).find("does not fit") != std::string::npos);
  CHECK(refusal({.highest = 9000}).find("half the rate") != std::string::npos);
  CHECK(refusal({.hop = 0}).find("cannot be") != std::string::npos);
}

TEST_CASE("SpecAugment masks what it says and draws by seed alone") {
  const SpecAugment augment = SpecAugment::parse("spec-augment 2 5 1 10 0.5");
  CHECK(augment.most_mels == 5);
  const int64_t mels = 20, frames = 40;
  std::set<int64_t> rows, columns;
  int64_t widest_rows = 0, widest_columns = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<float> row(mels), column(frames), row_again(mels), column_again(frames);
    RandomStream random(seed, 0), same(seed, 0);
    augment.draw(mels, frames, random, row, column);
    augment.draw(mels, frames, same, row_again, column_again);
    CHECK(row == row_again);
    CHECK(column == column_again);
    const auto masked_rows = std::count(row.begin(), row.end(), 0.0f),
               masked_columns = std::count(column.begin(), column.end(), 0.0f);
    CHECK(std::count(row.begin(), row.end(), 1.0f) == mels - masked_rows);
    CHECK(std::count(column.begin(), column.end(), 1.0f) == frames - masked_columns);
    widest_rows = std::max(widest_rows, masked_rows);
    widest_columns = std::max(widest_columns, masked_columns);
    for (int64_t m = 0; m < mels; ++m)
      if (row[m] == 0) rows.insert(m);
    for (int64_t f = 0; f < frames; ++f)
      if (column[f] == 0) columns.insert(f);
  }
  CHECK(widest_rows <= 10);
  CHECK(widest_rows >= 8);
  CHECK(widest_columns == 10);
  CHECK(rows.size() == static_cast<size_t>(mels));
  CHECK(columns.size() == static_cast<size_t>(frames));
  for (const char* wrong :
       {"spec", "spec-augment 1", "spec-augment 1 2 3", "spec-augment 1 2 3 4 2", "spec-augment a b"})
    CHECK_THROWS_WITH_AS(SpecAugment::parse(wrong), doctest::Contains("write it as"), InputError);
}

TEST_CASE("as graph operators log-mels are those of the fast transform, but for rounding") {
  struct Kind {
    MelOptions options;
    int samples;
  };
  const Kind kinds[] = {
      {{.rate = 8000, .fft = 256, .window = 200, .hop = 80, .mels = 40}, 6400},
      {{.rate = 16'000, .fft = 512, .window = 400, .hop = 160, .mels = 80}, 4001},
      {{.rate = 11'025, .fft = 512, .window = 276, .hop = 110, .mels = 64, .lowest = 50}, 5000},
      {{.rate = 8000, .fft = 64, .window = 63, .hop = 17, .mels = 8, .htk = true}, 100}};
  for (const Kind& kind : kinds) {
    const auto sound = signal(kind.samples, kind.options.rate);
    std::vector<float> judge;
    MelSpectrogram mel(kind.options);
    mel.log_power(sound, judge);
    const float loudest = *std::max_element(judge.begin(), judge.end());
    Array given(f32, {1, kind.samples});
    std::copy(sound.begin(), sound.end(), given.as<float>().begin());
    const Array levels = log_mels(Tensor(given), kind.options).to_array();
    CHECK(levels.shape() == Shape{1, 1, kind.options.mels, mel.frames(kind.samples)});
    const auto mine = levels.as<const float>();
    REQUIRE(mine.size() == judge.size());
    double most = 0;
    for (size_t i = 0; i < judge.size(); ++i)
      if (judge[i] > loudest - 6 * std::log(10.0f))  // what models look at
        most = std::max(most, static_cast<double>(std::abs(mine[i] - judge[i])));
    CHECK(most < 2e-4);
  }
}

TEST_CASE("log-mels of a sound are the same bits alone and in a batch") {
  const MelOptions options{.rate = 8000, .fft = 256, .window = 200, .hop = 80, .mels = 12};
  constexpr int64_t count = 5, samples = 1330;
  const auto all = signal(static_cast<int>(count * samples), 8000);
  Array batch(f32, {count, samples});
  std::copy(all.begin(), all.end(), batch.as<float>().begin());
  const Array together = log_mels(Tensor(batch), options).to_array();
  const auto size = static_cast<size_t>(together.count() / count);
  for (int64_t i = 0; i < count; ++i) {
    Array one(f32, {1, samples});
    std::copy_n(all.begin() + i * samples, samples, one.as<float>().begin());
    const Array alone = log_mels(Tensor(one), options).to_array();
    CHECK(std::ranges::equal(alone.as<float>(),
                             together.as<float>().subspan(static_cast<size_t>(i) * size, size)));
  }
}
