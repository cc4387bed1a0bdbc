// Sounds: their log-mel spectrograms, normalised.
#include "data/codecs/sounds/sound.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/moments.h"
#include "base/parallel_for.h"
#include "data/augment/spec_augment.h"
#include "data/codecs/sounds/mel.h"
#include "data/codecs/sounds/mel_graph.h"
#include "data/feed/sound_part.h"
#include "data/table/select.h"
#include "task/input.h"
#include "task/inputs/own_column.h"
#include "task/inputs/own_files.h"
#include "task/inputs/suiting.h"
#include "task/json_text.h"

namespace millrace::task {
namespace {

/// Below the loudest value of a sound, by 60 dB at most: how loud it was recorded says nothing, nor does
/// silence.
const float quietest_level = -6 * std::log(10.0f);

/// Windows of 25 ms every 10 ms.
data::MelOptions mel_options(const Settings& settings) {
  const int64_t rate = settings.integer("rate");
  const auto samples = [&](double milliseconds) {
    return std::max(1, static_cast<int>(std::lround(milliseconds * static_cast<double>(rate) / 1000)));
  };
  data::MelOptions options;
  options.rate = static_cast<int>(rate);
  options.window = samples(25);
  options.hop = samples(10);
  options.fft = 2;
  while (options.fft < options.window) options.fft *= 2;
  options.mels = static_cast<int>(settings.integer("mels"));
  return options;
}

int64_t sound_samples(const Settings& settings) {
  return std::max<int64_t>(
      1, std::llround(settings.number("seconds") * static_cast<double>(settings.integer("rate"))));
}

int64_t sound_frames(const Settings& settings) {
  return 1 + sound_samples(settings) / mel_options(settings).hop;
}

data::SoundOptions sound_options(const Settings& settings, bool masks) {
  data::SoundOptions options;
  options.column = settings.text("column");
  options.rate = static_cast<int>(settings.integer("rate"));
  options.samples = sound_samples(settings);
  if (masks) options.spec_augment = settings.text("spec_augment");
  options.mels = settings.integer("mels");
  options.frames = sound_frames(settings);
  return options;
}

/// The log-mels of a sound below its loudest, as the graph has them before it normalises. `mel` keeps its
/// memory.
void hear(data::MelSpectrogram& mel, std::span<const float> sound, std::vector<float>& levels) {
  mel.log_power(sound, levels);
  const float loudest = *std::max_element(levels.begin(), levels.end());
  for (float& level : levels) level = std::max(level - loudest, quietest_level);
}

struct LearntSounds {
  double mean = 0, deviation = 1;  // of the log-mels
  std::string column = {};         // where it was the only one
};

/// Mean and deviation of the log-mels of the training sounds, or of some from all over them, by the fast
/// transform: the same to the last bit wherever and however often it is asked.
LearntSounds measure_sounds(const Settings& settings, const Reading& reading) {
  constexpr int64_t most = 2000;
  const auto part = data::sound_part(*reading.samples, sound_options(settings, false));
  const auto sounds = data::sample_of(reading.samples, most);
  const int64_t count = sounds->count();
  Moments moments;
  std::vector<std::string> wrong(static_cast<size_t>(count));
  std::mutex mutex;
  int64_t done = 0;
  parallel_parts(count, 32, 0, [&](int64_t first, int64_t last) {
    data::MelSpectrogram mel(mel_options(settings));
    const auto scratch = part->scratch();
    std::vector<float> sound(static_cast<size_t>(sound_samples(settings))), levels;
    Moments mine;
    for (int64_t i = first; i < last; ++i) {
      const auto at = static_cast<size_t>(i);
      wrong[at] = part->read(*sounds, i, nullptr, scratch.get(), reinterpret_cast<std::byte*>(sound.data()));
      if (!wrong[at].empty()) continue;
      hear(mel, sound, levels);
      for (const float level : levels) mine.add(level);
    }
    const std::lock_guard lock(mutex);
    moments.merge(mine);
    done += last - first;
    if (reading.progress) reading.progress(reading.samples->path(), done, count);
  });
  if (moments.count() == 0)
    fail<InputError>("{}: none of its sounds can be decoded{}", reading.samples->path(),
                     count > 0 ? fmt::format("; the first, {}: {}", sounds->name(0), wrong[0]) : "");
  return {moments.mean(), std::max(1e-6, moments.deviation()), {}};
}

constexpr OwnFiles sound_files = {data::ColumnKind::audio, "audio", data::is_sound_name};

class SoundInput final : public Input {
 public:
  SoundInput(Section section, LearntSounds learnt)
      : Input(std::move(section)),
        learnt_(std::move(learnt)),
        mel_(mel_options(settings())),
        samples_(sound_samples(settings())),
        frames_(sound_frames(settings())) {}

  std::string encoding() const override {
    nlohmann::ordered_json json = {{"mean", learnt_.mean}, {"deviation", learnt_.deviation}};
    if (!learnt_.column.empty()) json["column"] = learnt_.column;
    return json.dump();
  }
  std::vector<std::string> notes() const override {
    return {fmt::format("sounds of {:.2f} s as {} mels of {} frames", settings().number("seconds"), mel_.mels,
                        frames_)};
  }

  std::vector<data::Field> fields() const override {
    return {{"sounds", {f32, {Dim::named("batch"), samples_}}}};
  }
  std::vector<data::Field> training_fields() const override {
    if (settings().text("spec_augment").empty()) return {};
    const Dim batch = Dim::named("batch");
    return {{"mel_mask", {f32, {batch, mel_.mels}}}, {"frame_mask", {f32, {batch, frames_}}}};
  }
  std::vector<Tensor> graph(std::span<const Tensor> fields, bool training) const override {
    const Tensor levels = data::log_mels(fields[0], mel_);
    const Tensor heard = maximum(levels - max(levels, {1, 2, 3}, true), quietest_level);
    const Tensor normal = (heard - learnt_.mean) * (1 / learnt_.deviation);
    if (!training || fields.size() < 3) return {normal};
    // What is masked becomes the mean.
    const Dim batch = fields[0].dim(0);
    return {normal * reshape(fields[1], {batch, 1, mel_.mels, 1}) *
            reshape(fields[2], {batch, 1, 1, frames_})};
  }
  void describe(nn::ModelOptions& options) const override { options.input = {1, mel_.mels, frames_}; }
  std::vector<std::string> architectures() const override {
    return suiting_architectures("picture", "convnet");
  }
  int64_t rate() const override { return settings().integer("rate"); }
  std::string gives() const override { return "picture"; }

  std::shared_ptr<const data::Part> part(const Reading& reading, Purpose purpose) const override {
    data::SoundOptions options = sound_options(settings(), purpose == Purpose::training);
    if (options.column.empty())
      options.column = same_column(*reading.samples, data::ColumnKind::audio, learnt_.column);
    return data::sound_part(*reading.samples, std::move(options));
  }

  std::shared_ptr<const data::Dataset> open(const Recipe& /*recipe*/,
                                            const std::vector<std::string>& paths) const override {
    return files_or_dataset(paths, settings().text("column"), sound_files);
  }
  std::vector<std::string> paths(const std::string& argument) const override {
    return paths_of(argument, sound_files);
  }
  bool together(const std::string& path) const override { return is_own_file(path, sound_files); }

  /// The spectrogram in grey: what the graph made of it where it is the row's last array, else heard here.
  /// Low notes are at the bottom, the loudest value is white, 60 dB below it is black.
  std::optional<Array> picture(std::span<const Array> row) const override {
    const auto size = static_cast<size_t>(mel_.mels * frames_);
    std::vector<float> levels;
    if (const auto last = row.back().as<float>(); row.size() > 1 && last.size() == size) {
      for (const float value : last)
        levels.push_back(static_cast<float>(value * learnt_.deviation + learnt_.mean));
    } else {
      data::MelSpectrogram mel(mel_);
      hear(mel, row[0].as<float>(), levels);
    }
    Array planes(u8, {1, mel_.mels, frames_});
    const auto to = planes.as<uint8_t>();
    const auto frames = static_cast<size_t>(frames_);
    for (size_t i = 0; i < size; ++i) {
      const size_t mel = static_cast<size_t>(mel_.mels) - 1 - i / frames;
      const float share = std::clamp(1 - levels[i] / quietest_level, 0.0f, 1.0f);
      to[mel * frames + i % frames] = static_cast<uint8_t>(std::lround(255 * share));
    }
    return planes;
  }
  std::string text(std::span<const Array> row) const override {
    float loudest = 0;
    for (const float sample : row[0].as<float>()) loudest = std::max(loudest, std::abs(sample));
    return fmt::format("{:.2f} s at {} Hz, loudest {:.2g}", settings().number("seconds"), mel_.rate, loudest);
  }
  std::optional<Array> fitting(const Reading& reading) const override {
    constexpr int64_t most = 500;
    const auto part = data::sound_part(*reading.samples, sound_options(settings(), false));
    const auto sounds = data::sample_of(reading.samples, most);
    const auto scratch = part->scratch();
    std::vector<float> all, sound(static_cast<size_t>(samples_));
    for (int64_t i = 0; i < sounds->count(); ++i)
      if (part->read(*sounds, i, nullptr, scratch.get(), reinterpret_cast<std::byte*>(sound.data())).empty())
        all.insert(all.end(), sound.begin(), sound.end());
    if (all.empty()) fail<InputError>("{}: none of its sounds can be decoded", reading.samples->path());
    Array array(f32, {static_cast<int64_t>(all.size()) / samples_, samples_});
    std::copy(all.begin(), all.end(), array.as<float>().begin());
    return array;
  }

 private:
  LearntSounds learnt_;
  data::MelOptions mel_;
  int64_t samples_, frames_;
};

void check_sounds(const Section& section, const Recipe& /*recipe*/) {
  const Settings& s = section.settings;
  const std::string key = input_key(section);
  // What one sound takes in memory while it is looked at, on each thread.
  if (sound_samples(s) > 200'000'000)
    fail<InputError>(
        "{0}.seconds = {1} at {0}.rate = {2} are {3} samples of one sound, more than 200 million", key,
        s.number("seconds"), s.integer("rate"), sound_samples(s));
  if (const std::string& masks = s.text("spec_augment"); !masks.empty()) try {
      (void)data::SpecAugment::parse(masks);
    } catch (const InputError& error) {
      fail<InputError>("{}.spec_augment = {}", key, error.what());
    }
}

std::unique_ptr<Input> learn_sounds(const Section& said, const Reading& reading) {
  Section section = said;
  section.set("column", own_column(said, reading, data::ColumnKind::audio));
  LearntSounds learnt = measure_sounds(section.settings, reading);
  learnt.column = only_column(*reading.samples, data::ColumnKind::audio);
  return std::make_unique<SoundInput>(section, std::move(learnt));
}

std::unique_ptr<Input> load_sounds(const Section& section, const std::string& encoding) {
  LearntSounds learnt = read_encoding(encoding, "the sounds", [](const nlohmann::json& json) {
    return LearntSounds{json.at("mean").get<double>(), json.at("deviation").get<double>(),
                        json.value("column", std::string())};
  });
  if (!std::isfinite(learnt.mean) || !(learnt.deviation > 0))
    fail<InputError>("what the checkpoint knows of the sounds is damaged: its deviation is {}",
                     learnt.deviation);
  return std::make_unique<SoundInput>(section, std::move(learnt));
}

/// Of a few sounds from all over the data: how long they are, and at what rate.
std::string draft_sounds(const data::Dataset& samples, const std::vector<std::string>& columns) {
  std::vector<double> seconds;
  int slowest = 0;
  const size_t place = samples.column(columns.at(0));
  const int64_t looks = std::min<int64_t>(samples.count(), 32);
  for (int64_t i = 0; i < looks; ++i) try {
      const data::Value value = samples.read(i * samples.count() / looks, place);
      const auto* bytes = std::get_if<data::Bytes>(&value);
      data::SoundInfo info;
      if (!bytes || !data::read_sound_info(bytes->view(), info).empty() || info.rate < 100) continue;
      seconds.push_back(static_cast<double>(info.frames) / info.rate);
      slowest = slowest == 0 ? info.rate : std::min(slowest, info.rate);
    } catch (const Error&) {  // a bad sample; others say enough
    }
  if (seconds.empty()) return "";
  std::sort(seconds.begin(), seconds.end());
  const double most = std::clamp(std::ceil(10 * seconds[seconds.size() * 9 / 10]) / 10, 0.1, 3600.0);
  return fmt::format(
      "# sounds of {:.2f} to {:.2f} s, {} Hz and more\n"
      "rate = {}\nseconds = {:.1f}  # longer ones are cut, shorter ones filled up with silence\n"
      "# spec_augment = \"spec-augment 2 15 2 25 0.2\"  # masks stretches of mels and of time in training\n",
      seconds.front(), seconds.back(), slowest, std::min(slowest, 16'000), most);
}

}  // namespace

MILLRACE_INPUT(sound){
    .name = "sound",
    .doc = "sounds (WAV, FLAC) as log-mel spectrograms",
    .unit = "sounds",
    .settings = {{"column", "column of the sounds; empty: the only one of sounds", std::string()},
                 {"rate", "resampled to so many samples a second", int64_t{16'000}, 100, 1'000'000},
                 {"seconds", "cut, or filled up with silence, to that length", 1.0, 0.01, 3600},
                 {"mels", "bands of the log-mel spectrogram (windows of 25 ms every 10 ms)", int64_t{64}, 1,
                  4096},
                 {"spec_augment",
                  "masks of spectrograms in training, \"spec-augment 2 15 2 25 0.2\": masks of mels and how "
                  "wide, of frames and how wide, at most that share",
                  std::string()}},
    .recognise =
        [](const data::Dataset& samples, const std::vector<std::string>& taken) {
          return free_columns(samples, data::ColumnKind::audio, taken);
        },
    .rank = 30,
    .check = check_sounds,
    .learn = learn_sounds,
    .load = load_sounds,
    .draft = draft_sounds,
};

}  // namespace millrace::task
