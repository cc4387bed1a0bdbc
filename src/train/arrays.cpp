#include "train/arrays.h"

#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/utf8.h"
#include "data/array_feed.h"
#include "data/audio/mel.h"
#include "data/audio/sound.h"
#include "data/audio/spec_augment.h"
#include "data/query.h"
#include "data/tables/table_encoder.h"
#include "data/text/first_group.h"
#include "nn/models/table.h"

namespace millrace::train {
namespace {

using Json = nlohmann::json;

bool is_table(const Recipe& recipe) { return recipe.data.samples == "table"; }

/// The samples to train on, or to test on.
std::shared_ptr<const data::Dataset> open_part(const Recipe& recipe, const std::string& path, bool training) {
  data::OpenOptions options;
  if (!recipe.data.header.empty()) options.header = recipe.data.header == "yes";
  const bool own = path.empty() && recipe.data.test.empty();
  const std::string& named = training || own ? recipe.data.train : path.empty() ? recipe.data.test : path;
  std::shared_ptr<const data::Dataset> dataset = data::open_dataset(expand(named), options);
  const std::string& test = recipe.data.test_where;
  if (!test.empty() && (training || own))
    dataset = data::select(dataset, data::Query::parse(training ? "not (" + test + ")" : test));
  if (training && !recipe.data.where.empty())
    dataset = data::select(dataset, data::Query::parse(recipe.data.where));
  return dataset;
}

// ---- tables

std::shared_ptr<const data::ArrayData> table_rows(const data::Dataset& dataset,
                                                  const data::TableEncoder& encoder,
                                                  const ReadProgress& progress) {
  std::mutex mutex;
  int64_t most = 0;
  auto rows = encoder.encode(dataset, 0, [&](int64_t done, int64_t total) {
    const std::lock_guard lock(mutex);
    most = std::max(most, done);
    if (progress) progress(dataset.path(), most, total);
  });
  auto out = std::make_shared<data::ArrayData>();
  if (!encoder.dense().empty()) out->inputs.push_back({"numbers", std::move(rows.dense)});
  if (!encoder.categories().empty()) out->inputs.push_back({"ids", std::move(rows.ids)});
  const auto labels = rows.labels.as<int64_t>();
  out->labels.assign(labels.begin(), labels.end());
  out->classes = encoder.classes();
  out->path = dataset.path();
  out->tried = dataset.count();
  out->notes = dataset.notes();
  out->notes.push_back(fmt::format("{}: {} rows, {} columns of numbers, {} of categories, {} classes",
                                   dataset.path(), dataset.count(), encoder.dense().size(),
                                   encoder.categories().size(), encoder.classes().size()));
  return out;
}

// ---- sounds

/// What is known of sounds: the classes, and what log-mels are like.
struct SoundEncoding {
  std::vector<std::string> classes;
  double mean = 0, deviation = 1;

  std::string json() const {
    std::vector<std::string> names;
    for (const std::string& name : classes) names.push_back(stored_text(name));
    return Json{{"classes", names}, {"mean", mean}, {"deviation", deviation}}.dump();
  }
  static SoundEncoding parse(const std::string& text) {
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
};

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

const float quietest = -6 * std::log(10.0f);

int64_t sound_samples(const Recipe& recipe) {
  return std::max<int64_t>(1, std::llround(recipe.data.seconds * static_cast<double>(recipe.data.rate)));
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

/// Log-mels f32 [N, 1, mels, frames] of all sounds, cut or filled up with silence to data.seconds.
std::shared_ptr<data::ArrayData> sound_rows(const data::Dataset& dataset, const Recipe& recipe,
                                            std::vector<std::string> classes, const ReadProgress& progress) {
  size_t column = 0;
  while (column < dataset.columns().size() && dataset.columns()[column].kind != data::ColumnKind::audio)
    ++column;
  if (column == dataset.columns().size())
    fail<InputError>("{}: no column holds sounds (WAV or FLAC files)", dataset.path());
  const data::MelOptions options = mel_options(recipe);
  const int64_t samples = sound_samples(recipe), count = dataset.count(), frames = 1 + samples / options.hop;
  const Labels labels(dataset, recipe);
  std::vector<std::string> names(static_cast<size_t>(count)), wrong(static_cast<size_t>(count));
  const int64_t row = options.mels * frames;
  if (count * row > (recipe.data.cache_mb << 18))
    fail<InputError>("{}: its {} spectrograms take {} MB, more than data.cache_mb = {}", dataset.path(),
                     count, count * row >> 18, recipe.data.cache_mb);
  std::vector<float> all(static_cast<size_t>(count * row));
  std::mutex mutex;
  int64_t done = 0;
  constexpr int64_t part = 64;
  data::parallel_for((count + part - 1) / part, 0, [&](int64_t p) {
    data::MelSpectrogram mel(options);
    data::Sound sound;
    std::vector<float> out;
    for (int64_t i = p * part; i < std::min(count, (p + 1) * part); ++i) {
      const auto at = static_cast<size_t>(i);
      names[at] = labels(i);
      const data::Value value = dataset.read(i, column);
      const auto* bytes = std::get_if<data::Bytes>(&value);
      wrong[at] = bytes ? data::decode_sound(bytes->view(), sound) : "there is no sound";
      if (!wrong[at].empty()) continue;
      data::mix_to_mono(sound);
      data::resample(sound, options.rate);
      sound.samples.resize(static_cast<size_t>(samples));
      mel.log_power(sound.samples, out);
      if (!std::all_of(out.begin(), out.end(), [](float level) { return std::isfinite(level); })) {
        wrong[at] = "its samples are so large that their power is no number";
        continue;
      }
      // Below the loudest value of the sound, by 60 dB at most: how loud it was recorded says nothing, nor does silence.
      const float loudest = *std::max_element(out.begin(), out.end());
      for (float& level : out) level = std::max(level - loudest, quietest);
      std::copy(out.begin(), out.end(), all.begin() + i * row);
    }
    const std::lock_guard lock(mutex);
    done = std::min(count, done + part);
    if (progress) progress(dataset.path(), done, count);
  });

  auto result = std::make_shared<data::ArrayData>();
  result->unit = "sounds";
  result->path = dataset.path();
  result->tried = count;
  if (classes.empty()) {
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
    if (found == classes.end() || *found != names[at])
      fail<InputError>("{}: its class '{}' is none of training ({})", dataset.name(i), names[at],
                       fmt::join(classes, ", "));
    result->labels.push_back(found - classes.begin());
    std::copy_n(all.begin() + i * row, row, all.begin() + kept++ * row);
  }
  if (kept == 0)
    fail<InputError>("{}: none of its sounds can be decoded{}", dataset.path(),
                     count > 0 ? fmt::format("; the first, {}: {}", dataset.name(0), wrong[0]) : "");
  Array rows(f32, {kept, 1, options.mels, frames});
  std::copy_n(all.begin(), kept * row, rows.as<float>().begin());
  result->inputs.push_back({"spectrograms", std::move(rows)});
  result->classes = std::move(classes);
  result->notes = dataset.notes();
  result->notes.push_back(fmt::format("{}: {} sounds of {:.2f} s as {} mels of {} frames, {} classes",
                                      dataset.path(), kept, recipe.data.seconds, options.mels, frames,
                                      result->classes.size()));
  return result;
}

void normalise(data::ArrayData& data, const SoundEncoding& encoding) {
  for (float& value : data.inputs[0].rows.as<float>())
    value = static_cast<float>((value - encoding.mean) / encoding.deviation);
}

data::ArrayFeedOptions feed_options(const Recipe& recipe, bool training) {
  data::ArrayFeedOptions options;
  options.seed = static_cast<uint64_t>(recipe.train.seed);
  options.batch = training ? recipe.train.batch : recipe.eval.batch;
  options.order = training ? recipe.data.order : "sequential";
  options.whole_batches = training;
  return options;
}

}  // namespace

namespace {

// Keys that would be read by nobody: who gives one expects something of it.
void refuse_others(const Recipe& recipe, const std::string& name) {
  const Recipe usual;
  const Recipe::Data &d = recipe.data, &u = usual.data;
  const bool table = is_table(recipe);
  std::vector<std::pair<const char*, bool>> others = {
      {"data.tokenizer", !d.tokenizer.empty()},
      {"data.text", !d.text.empty()},
      {"data.sequences", d.sequences != u.sequences},
      {"data.spans", !d.spans.empty()},
      {"data.test_share", d.test_share > 0},
      {"data.label_pattern", table && !d.label_pattern.empty()},
      {"data.spec_augment", table && !d.spec_augment.empty()},
      {"data.label_trim", !table && !d.label_trim.empty()},
      {"data.categories", !table && !d.categories.empty()},
      {"data.leave_out", !table && !d.leave_out.empty()}};
  for (const auto& key : picture_keys(recipe)) others.push_back(key);
  for (const auto& [key, given] : others)
    if (given) fail<InputError>("{}: {} does not go with data.samples = \"{}\"", name, key, d.samples);
  for (const std::string& metric : recipe.eval.metrics)
    if (metric == "bits-per-byte" || metric == "perplexity")
      fail<InputError>("{}: the metric {} is for texts", name, metric);
}

}  // namespace

bool has_arrays(const Recipe& recipe) { return recipe.data.samples != "pictures"; }

void check_arrays(const Recipe& recipe, const std::string& name) {
  const Recipe::Data& d = recipe.data;
  if (!has_arrays(recipe)) {
    const std::pair<const char*, bool> keys[] = {{"data.label_pattern", !d.label_pattern.empty()},
                                                 {"data.label_trim", !d.label_trim.empty()},
                                                 {"data.categories", !d.categories.empty()},
                                                 {"data.leave_out", !d.leave_out.empty()},
                                                 {"data.spec_augment", !d.spec_augment.empty()},
                                                 {"data.test_where", !d.test_where.empty()},
                                                 {"data.header", !d.header.empty()}};
    for (const auto& [key, given] : keys)
      if (given) fail<InputError>("{}: {} goes with data.samples = \"table\" or \"sounds\"", name, key);
    return;
  }
  refuse_others(recipe, name);
  // What one sound takes in memory while it is looked at, on each thread.
  if (!is_table(recipe) && sound_samples(recipe) > 200'000'000)
    fail<InputError>(
        "{}: data.seconds = {} at data.rate = {} are {} samples of one sound, more than 200 million", name,
        d.seconds, d.rate, sound_samples(recipe));
  if (d.label.empty()) fail<InputError>("{}: data.label must name the column that is to be predicted", name);
  if (!d.test.empty() && !d.test_where.empty())
    fail<InputError>("{}: data.test and data.test_where both say what to test on: give one", name);
  if (is_table(recipe) != (recipe.model.kind == "table"))
    fail<InputError>("{}: model.kind = \"table\" goes with data.samples = \"table\"", name);
  if (!d.spec_augment.empty()) (void)data::SpecAugment::parse(d.spec_augment);
}

std::unique_ptr<data::Feed> training_arrays(const Recipe& recipe, std::string& encoding,
                                            const ReadProgress& progress) {
  const auto dataset = open_part(recipe, "", true);
  data::ArrayFeedOptions options = feed_options(recipe, true);
  if (is_table(recipe)) {
    data::TableOptions table;
    table.label = recipe.data.label;
    table.trim = recipe.data.label_trim;
    table.categories = recipe.data.categories;
    table.leave_out = recipe.data.leave_out;
    const auto encoder = data::TableEncoder::learn(*dataset, table);
    encoding = encoder.json();
    return data::array_feed(table_rows(*dataset, encoder, progress), std::move(options));
  }
  auto rows = sound_rows(*dataset, recipe, {}, progress);
  SoundEncoding sounds{rows->classes, 0, 1};
  double sum = 0, squares = 0;
  const auto values = rows->inputs[0].rows.as<float>();
  for (const float value : values) sum += value;
  sounds.mean = sum / static_cast<double>(values.size());
  for (const float value : values) squares += (value - sounds.mean) * (value - sounds.mean);
  sounds.deviation = std::max(1e-6, std::sqrt(squares / static_cast<double>(values.size())));
  encoding = sounds.json();
  normalise(*rows, sounds);
  if (!recipe.data.spec_augment.empty())
    options.change = [augment = data::SpecAugment::parse(recipe.data.spec_augment), mels = recipe.data.mels](
                         std::span<float> row, RandomStream& random) { augment.apply(row, mels, 0, random); };
  return data::array_feed(std::move(rows), std::move(options));
}

std::unique_ptr<data::Feed> test_arrays(const Recipe& recipe, const std::string& encoding,
                                        const std::string& path, const ReadProgress& progress) {
  const auto dataset = open_part(recipe, path, false);
  if (is_table(recipe))
    return data::array_feed(table_rows(*dataset, data::TableEncoder::parse(encoding), progress),
                            feed_options(recipe, false));
  const SoundEncoding sounds = SoundEncoding::parse(encoding);
  auto rows = sound_rows(*dataset, recipe, sounds.classes, progress);
  normalise(*rows, sounds);
  return data::array_feed(std::move(rows), feed_options(recipe, false));
}

Session make_array_session(Recipe recipe, const std::string& encoding) {
  const Dim batch = Dim::named("batch");
  std::vector<data::Field> inputs;
  std::vector<std::string> classes;
  nn::Model model;
  if (is_table(recipe)) {
    const auto encoder = data::TableEncoder::parse(encoding);
    nn::models::TableModel table;
    table.numbers = static_cast<int64_t>(encoder.dense().size());
    for (const auto& category : encoder.categories()) table.ids.push_back(category.ids);
    classes = encoder.classes();
    table.classes = static_cast<int64_t>(classes.size());
    table.width = recipe.model.width;
    table.depth = recipe.model.depth;
    table.dropout = recipe.model.dropout;
    model = nn::models::table(table);
    if (table.numbers > 0) inputs.push_back({"numbers", {f32, {batch, table.numbers}}});
    if (!table.ids.empty()) inputs.push_back({"ids", {i64, {batch, static_cast<int64_t>(table.ids.size())}}});
  } else {
    classes = SoundEncoding::parse(encoding).classes;
    const data::MelOptions options = mel_options(recipe);
    const Shape picture{1, options.mels, 1 + sound_samples(recipe) / options.hop};
    model = recipe.model.layers.empty()
                ? nn::make_model(recipe.model.kind, {static_cast<int64_t>(classes.size()), picture})
                : nn::make_layers(recipe.model.layers, picture);
    inputs.push_back({"spectrograms", {f32, {batch, picture[0], picture[1], picture[2]}}});
  }
  const auto outputs = static_cast<int64_t>(classes.size());
  Session session =
      make_session(std::move(recipe), std::move(classes), std::move(model), std::move(inputs), 0, outputs);
  session.encoding = encoding;
  return session;
}

}  // namespace millrace::train
