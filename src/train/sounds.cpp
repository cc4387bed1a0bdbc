#include "train/sounds.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/format.h"
#include "base/parallel_for.h"
#include "base/utf8.h"
#include "data/codecs/sounds/mel_graph.h"
#include "data/codecs/sounds/sound.h"
#include "data/codecs/text/first_group.h"
#include "ops/build.h"

namespace millrace::train {

using Json = nlohmann::json;

std::string SoundEncoding::json() const {
  std::vector<std::string> names;
  for (const std::string& name : classes) names.push_back(stored_text(name));
  return Json{{"classes", names}, {"mean", mean}, {"deviation", deviation}}.dump();
}

SoundEncoding SoundEncoding::parse(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    SoundEncoding encoding{{}, json.at("mean").get<double>(), json.at("deviation").get<double>()};
    for (const Json& name : json.at("classes"))
      encoding.classes.push_back(text_of_stored(name.get<std::string>()));
    return encoding;
  } catch (const Json::exception& error) {
    fail<InputError>("what the checkpoint knows of the sounds is damaged: {}", error.what());
  }
}

data::MelOptions mel_options(const Recipe& recipe) {
  const auto samples = [&](double milliseconds) {
    return std::max(
        1, static_cast<int>(std::lround(milliseconds * static_cast<double>(recipe.data.rate) / 1000)));
  };
  data::MelOptions options;
  options.rate = static_cast<int>(recipe.data.rate);
  options.window = samples(25);
  options.hop = samples(10);
  options.fft = 2;
  while (options.fft < options.window) options.fft *= 2;
  options.mels = static_cast<int>(recipe.data.mels);
  return options;
}

namespace {

const float quietest = -6 * std::log(10.0f);

}  // namespace

int64_t sound_samples(const Recipe& recipe) {
  return std::max<int64_t>(1, std::llround(recipe.data.seconds * static_cast<double>(recipe.data.rate)));
}

namespace {

/// A message without the name that it begins with.
std::string without_name(std::string message, const std::string& name) {
  return message.starts_with(name + ": ") ? message.substr(name.size() + 2) : message;
}

/// The class of a sample as it is written in its column.
class Labels {
 public:
  Labels(const data::Dataset& dataset, const Recipe& recipe) : dataset_(dataset), name_(recipe.data.label) {
    column_ = dataset.column(name_);
    const auto kind = dataset.columns()[column_].kind;
    if (kind != data::ColumnKind::text && kind != data::ColumnKind::integer)
      fail<InputError>("{}: '{}' holds neither texts nor whole numbers, which classes are", dataset.path(),
                       name_);
    if (!recipe.data.label_pattern.empty()) pattern_.emplace(recipe.data.label_pattern);
  }
  std::string operator()(int64_t i) const {
    const data::Value value = dataset_.read(i, column_);
    if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
    const auto* text = std::get_if<std::string>(&value);
    if (!text) fail<InputError>("{}: has no {}", dataset_.name(i), name_);
    if (!pattern_) return *text;
    const auto found = pattern_->find(*text);
    if (!found)
      fail<InputError>("{}: its {}, '{}'{}, does not match data.label_pattern", dataset_.name(i), name_,
                       text->substr(0, 80), text->size() > 80 ? " …" : "");
    return *found;
  }

 private:
  const data::Dataset& dataset_;
  std::string name_;
  size_t column_ = 0;
  std::optional<data::FirstGroup> pattern_;
};

size_t sound_column(const data::Dataset& dataset) {
  const auto& columns = dataset.columns();
  for (size_t c = 0; c < columns.size(); ++c)
    if (columns[c].kind == data::ColumnKind::audio) return c;
  fail<InputError>("{}: no column holds sounds (WAV or FLAC files)", dataset.path());
}

/// Makes log-mels of sounds one by one; keeps its memory.
class Listener {
 public:
  explicit Listener(const Recipe& recipe)
      : mel_(mel_options(recipe)), samples_(static_cast<size_t>(sound_samples(recipe))) {}
  /// "" or why there are none.
  std::string operator()(const data::Value& value, float* row) {
    const auto* bytes = std::get_if<data::Bytes>(&value);
    std::string wrong = bytes ? data::decode_sound(bytes->view(), sound_) : "there is no sound";
    if (!wrong.empty()) return wrong;
    data::mix_to_mono(sound_);
    data::resample(sound_, mel_.options().rate);
    sound_.samples.resize(samples_);
    mel_.log_power(sound_.samples, out_);
    if (!std::all_of(out_.begin(), out_.end(), [](float level) { return std::isfinite(level); }))
      return "its samples are so large that their power is no number";
    // Below the loudest value of the sound, by 60 dB at most: how loud it was recorded says nothing, nor does silence.
    const float loudest = *std::max_element(out_.begin(), out_.end());
    for (float& level : out_) level = std::max(level - loudest, quietest);
    std::copy(out_.begin(), out_.end(), row);
    return {};
  }

 private:
  data::MelSpectrogram mel_;
  size_t samples_;
  data::Sound sound_;
  std::vector<float> out_;
};

}  // namespace

std::shared_ptr<data::ArrayData> sound_rows(std::shared_ptr<const data::Dataset> opened, const Recipe& recipe,
                                            std::vector<std::string> classes, bool labelled, int64_t batch,
                                            const ReadProgress& progress) {
  const data::Dataset& dataset = *opened;
  const size_t column = sound_column(dataset);
  const data::MelOptions options = mel_options(recipe);
  const int64_t count = dataset.count(), frames = 1 + sound_samples(recipe) / options.hop;
  std::optional<const Labels> labels;
  if (labelled) labels.emplace(dataset, recipe);
  std::vector<std::string> names(static_cast<size_t>(count)), wrong(static_cast<size_t>(count));
  const int64_t row = options.mels * frames;
  if (labelled && count * row > (recipe.data.cache_mb << 18))
    fail<InputError>("{}: its {} spectrograms take {} MB, more than data.cache_mb = {}", dataset.path(),
                     count, count * row >> 18, recipe.data.cache_mb);
  if (labelled) {
    // A class as it is written, and why a sound is bad, of each.
    const int64_t texts = count * static_cast<int64_t>(2 * sizeof(std::string));
    require_memory(recipe,
                   data::array_memory(count, row * static_cast<int64_t>(sizeof(float)), batch) + texts,
                   fmt::format("{}: the spectrograms of its {} sounds, {} mels × {} frames each",
                               dataset.path(), count, options.mels, frames),
                   "take less of it by data.where, data.seconds or data.mels");
  }
  const auto whole = std::make_shared<std::vector<float>>(static_cast<size_t>(count * row));
  std::vector<float>& all = *whole;
  std::mutex mutex;
  int64_t done = 0;
  constexpr int64_t part = 64;
  parallel_for((count + part - 1) / part, 0, [&](int64_t p) {
    Listener listener(recipe);
    for (int64_t i = p * part; i < std::min(count, (p + 1) * part); ++i) {
      const auto at = static_cast<size_t>(i);
      if (labels) names[at] = (*labels)(i);
      try {
        wrong[at] = listener(dataset.read(i, column), &all[at * static_cast<size_t>(row)]);
      } catch (const Error& error) {
        // Of files that are named one by one, the others are predicted.
        if (labelled) throw;
        wrong[at] = without_name(error.what(), dataset.name(i));
      }
    }
    const std::lock_guard lock(mutex);
    done = std::min(count, done + part);
    if (progress) progress(dataset.path(), done, count);
  });

  auto result = std::make_shared<data::ArrayData>();
  result->unit = "sounds";
  result->path = dataset.path();
  result->tried = count;
  if (classes.empty() && labelled) {
    classes = names;
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  }
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    if (!wrong[at].empty()) {
      result->bad.push_back({i, dataset.name(i), wrong[at]});
      continue;
    }
    const auto found = std::lower_bound(classes.begin(), classes.end(), names[at]);
    if (labelled && (found == classes.end() || *found != names[at]))
      fail<InputError>("{}: its class '{}' is none of training ({})", dataset.name(i), names[at],
                       fmt::join(classes, ", "));
    result->labels.push_back(labelled ? found - classes.begin() : i);
    result->indices.push_back(i);
    std::copy_n(all.begin() + i * row, row, all.begin() + kept++ * row);
  }
  if (kept == 0 && labelled)
    fail<InputError>("{}: none of its sounds can be decoded{}", dataset.path(),
                     count > 0 ? fmt::format("; the first, {}: {}", dataset.name(0), wrong[0]) : "");
  Array rows({f32, {kept, 1, options.mels, frames}}, all.data(), whole);
  result->inputs.push_back({"spectrograms", std::move(rows)});
  result->classes = std::move(classes);
  result->notes = dataset.notes();
  result->notes.push_back(fmt::format("{}: {} sounds of {:.2f} s as {} mels of {} frames, {} classes",
                                      dataset.path(), kept, recipe.data.seconds, options.mels, frames,
                                      result->classes.size()));
  return result;
}

Value sound_graph(Graph& graph, Value sounds, const Recipe& recipe, const SoundEncoding& encoding) {
  ops::Build b(graph);
  const Value levels = data::log_mels(graph, sounds, mel_options(recipe));
  const Value below = b.sub(levels, b.max(levels, {1, 2, 3}, true));
  const Value heard = b.binary("maximum", below, b.scalar(f32, quietest));
  return b.mul(b.sub(heard, encoding.mean), 1 / encoding.deviation);
}

void normalise(data::ArrayData& data, const SoundEncoding& encoding) {
  for (float& value : data.inputs[0].rows.as<float>())
    value = static_cast<float>((value - encoding.mean) / encoding.deviation);
}

}  // namespace millrace::train
