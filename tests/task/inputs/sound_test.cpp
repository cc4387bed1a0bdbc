#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "base/file.h"
#include "data/codecs/sounds/mel.h"
#include "data/formats/file_list.h"
#include "learnt_input.h"
#include "support/datasets.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

std::string wave(int pitch, size_t samples) {
  std::string bytes = "RIFF";
  const auto put = [&](uint32_t value, int size) {
    for (int k = 0; k < size; ++k) bytes += static_cast<char>(value >> 8 * k);
  };
  put(static_cast<uint32_t>(36 + 2 * samples), 4);
  bytes += "WAVEfmt ";
  put(16, 4), put(1, 2), put(1, 2), put(8000, 4), put(16000, 4), put(2, 2), put(16, 2);
  bytes += "data";
  put(static_cast<uint32_t>(2 * samples), 4);
  for (size_t i = 0; i < samples; ++i)
    put(static_cast<uint32_t>(static_cast<int>(9000 * std::sin(0.01 * pitch * static_cast<double>(i)))), 2);
  return bytes;
}

/// Seven sounds: longer than 0.1 s, as long, shorter, one that is damaged.
struct SoundFiles {
  TempFolder folder;
  std::vector<std::string> paths;
  SoundFiles() {
    for (int i = 0; i < 7; ++i) {
      paths.push_back((folder / fmt::format("{}.wav", i)).string());
      write_file(paths.back(), wave(20 + 13 * i, static_cast<size_t>(600 + 100 * i)));
    }
  }
  std::shared_ptr<const data::Dataset> samples() const {
    return data::file_list(paths, "sounds", {"audio", data::ColumnKind::audio});
  }
};

task::Section sounds_section(const std::string& masks = "") {
  return settled_input(
      "sound", {{"rate", int64_t{8000}}, {"seconds", 0.1}, {"mels", int64_t{12}}, {"spec_augment", masks}});
}

/// The log-mels of a row by the fast transform, below the loudest by 60 dB at most.
std::vector<float> heard(std::span<const float> sound) {
  data::MelOptions options{.rate = 8000, .fft = 256, .window = 200, .hop = 80, .mels = 12};
  data::MelSpectrogram mel(options);
  std::vector<float> levels;
  mel.log_power(sound, levels);
  const float loudest = *std::max_element(levels.begin(), levels.end());
  for (float& level : levels) level = std::max(level - loudest, -6 * std::log(10.0f));
  return levels;
}

}  // namespace

TEST_CASE("a sound's graph gives normalised log-mels, and its encoding is all that it needs") {
  const SoundFiles files;
  const auto samples = files.samples();
  const task::Recipe recipe;
  const auto& kind = task::input_kinds().at("sound");
  const auto input = kind.learn(sounds_section(), reading_of(recipe, samples));
  CHECK(kind.learn(sounds_section(), reading_of(recipe, samples))->encoding() == input->encoding());
  const auto loaded = kind.load(sounds_section(), input->encoding());
  CHECK(loaded->encoding() == input->encoding());
  CHECK(loaded->fields()[0].type == Type{f32, {Dim::named("batch"), 800}});
  CHECK(loaded->training_fields().empty());
  nn::ModelOptions options;
  loaded->describe(options);
  CHECK(options.input == Shape{1, 12, 11});

  const auto raw = rows_of(*loaded->part(reading_of(recipe, samples), task::Purpose::evaluation), *samples);
  REQUIRE(raw.size() == 1);
  const Array given = graph_of(*loaded, raw, false)[0];
  CHECK(given.shape() == Shape{7, 1, 12, 11});
  // By the definition: mean 0, deviation 1 over all, each value that of the fast transform.
  std::vector<float> levels;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 7; ++i)
    for (const float level : heard(raw[0].as<float>().subspan(i * 800, 800)))
      levels.push_back(level), sum += level;
  const double mean = sum / static_cast<double>(levels.size());
  for (const float level : levels) squares += (level - mean) * (level - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(levels.size()));
  double worst = 0;
  for (size_t i = 0; i < levels.size(); ++i)
    worst = std::max(worst, std::abs(given.as<float>()[i] - (levels[i] - mean) / deviation));
  CHECK(worst < 1e-4);
}

TEST_CASE("masks of a spectrogram are drawn for training alone and set what they cover to the mean") {
  const SoundFiles files;
  const auto samples = files.samples();
  const task::Recipe recipe;
  const auto section = sounds_section("spec-augment 2 5 2 4 0.5");
  const auto input = task::input_kinds().at("sound").learn(section, reading_of(recipe, samples));
  REQUIRE(input->training_fields().size() == 2);
  CHECK(input->training_fields()[0].name == "mel_mask");
  CHECK(input->training_fields()[1].type == Type{f32, {Dim::named("batch"), 11}});
  const auto part = input->part(reading_of(recipe, samples), task::Purpose::training);
  CHECK(part->fields()[1].type == input->training_fields()[0].type);
  CHECK(part->fields()[2].type == input->training_fields()[1].type);
  CHECK(input->part(reading_of(recipe, samples), task::Purpose::evaluation)->fields().size() == 1);

  const auto raw = rows_of(*part, *samples);
  const Array masked = graph_of(*input, raw, true)[0], whole = graph_of(*input, {raw[0]}, false)[0];
  const auto mels = raw[1].as<float>(), frames = raw[2].as<float>();
  CHECK(std::count(mels.begin(), mels.end(), 0.0f) > 0);
  bool right = true;
  for (size_t i = 0; i < masked.as<float>().size(); ++i) {
    const size_t row = i / (12 * 11), mel = i / 11 % 12, frame = i % 11;
    const bool kept = mels[row * 12 + mel] == 1 && frames[row * 11 + frame] == 1;
    right &=
        kept ? std::abs(masked.as<float>()[i] - whole.as<float>()[i]) < 1e-6 : masked.as<float>()[i] == 0;
  }
  CHECK(right);
  CHECK(values_of<float>(rows_of(*part, *samples, 1)[1]) != values_of<float>(raw[1]));  // anew each epoch

  // To look at: the loudest value is white, low notes at the bottom.
  const auto row = raw[0].as<float>().subspan(6 * 800, 800);
  Array one(f32, {1, 800});
  std::copy(row.begin(), row.end(), one.as<float>().begin());
  const auto picture = input->picture(std::vector<Array>{one});
  REQUIRE(picture);
  CHECK(picture->shape() == Shape{1, 12, 11});
  const auto levels = heard(row);
  const size_t loudest = static_cast<size_t>(std::max_element(levels.begin(), levels.end()) - levels.begin());
  CHECK(picture->as<uint8_t>()[(11 - loudest / 11) * 11 + loudest % 11] == 255);
  const Array made = graph_of(*input, {one}, false)[0];
  const auto again = input->picture(std::vector<Array>{one, made});
  int differs = 0;
  for (size_t i = 0; i < levels.size(); ++i)
    differs = std::max(differs, std::abs(again->as<uint8_t>()[i] - picture->as<uint8_t>()[i]));
  CHECK(differs <= 1);
}

TEST_CASE("damaged sounds are left out of what is learnt, and files named one by one are one data set") {
  const SoundFiles files;
  const task::Recipe recipe;
  const auto& kind = task::input_kinds().at("sound");
  const std::string before = kind.learn(sounds_section(), reading_of(recipe, files.samples()))->encoding();
  write_file(files.folder / "bad.wav", "RIFF, but not more");
  auto paths = files.paths;
  paths.insert(paths.begin() + 2, (files.folder / "bad.wav").string());
  const auto samples = data::file_list(paths, "sounds", {"audio", data::ColumnKind::audio});
  const auto input = kind.learn(sounds_section(), reading_of(recipe, samples));
  CHECK(input->encoding() == before);
  CHECK(input->fitting(reading_of(recipe, samples))->shape() == Shape{7, 800});

  CHECK(input->together("a/b.FLAC"));
  CHECK(!input->together("a/b.tar"));
  CHECK(input->paths((files.folder / "[0-3].wav").string()).size() == 4);
  CHECK(kind.recognise(*samples, {}) == std::vector<std::string>{"audio"});
  CHECK(kind.recognise(*samples, {"audio"}).empty());
  CHECK(kind.draft(*samples, {"audio"}).find("rate = 8000\nseconds = 0.2") != std::string::npos);

  CHECK(refusal([&] {
          kind.check(sounds_section("spec-augment 2"), recipe);
        }).starts_with("input.spec_augment = \"spec-augment 2\": write it as"));
  CHECK(refusal([&] {
          kind.check(settled_input("sound", {{"rate", int64_t{1'000'000}}, {"seconds", 3600.0}}), recipe);
        }).starts_with("input.seconds = 3600 at input.rate = 1000000 are"));
  CHECK(refusal([&] { (void)kind.load(sounds_section(), "{\"mean\": 1}"); }).find("damaged") !=
        std::string::npos);
}
