#include "train/arrays.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "base/format.h"
#include "data/augment/spec_augment.h"
#include "data/encode/table_encoder.h"
#include "data/encode/table_graph.h"
#include "data/feed/array_feed.h"
#include "data/formats/open_dataset.h"
#include "data/table/query.h"
#include "data/table/select.h"
#include "train/sounds.h"

namespace millrace::train {
namespace {

bool is_table(const Recipe& recipe) { return recipe.data.samples == "table"; }

/// Does a data set have all columns that a model looks at?
bool has_columns(const data::Dataset& dataset, const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::any_of(dataset.columns().begin(), dataset.columns().end(),
                       [&](const data::Column& column) { return column.name == name; });
  });
}

/// A table that a trained model looks at: texts are texts, whatever those of this file look like.
std::shared_ptr<const data::Dataset> open_known(const Recipe& recipe, const data::TableEncoder& encoder,
                                                const std::string& path) {
  data::OpenOptions options;
  options.texts = encoder.text_columns();
  if (!recipe.data.header.empty()) options.header = recipe.data.header == "yes";
  std::shared_ptr<const data::Dataset> dataset = data::open_dataset(path, options);
  // Of a few rows it cannot be told from the content whether the first is names, but from the names.
  if (recipe.data.header.empty() && dataset->format() == "csv" && path != "-" && !path.starts_with("pipe:") &&
      !has_columns(*dataset, encoder.columns())) {
    options.header = true;
    std::shared_ptr<const data::Dataset> named;
    try {
      named = data::open_dataset(path, options);
    } catch (const InputError&) {  // there is nothing behind the names
    }
    if (named && has_columns(*named, encoder.columns())) return named;
  }
  return dataset;
}

/// The samples to train on, or to test on. `encoder`: what is known of the columns of tables.
std::shared_ptr<const data::Dataset> open_part(const Recipe& recipe, const std::string& path, bool training,
                                               const data::TableEncoder* encoder = nullptr) {
  data::OpenOptions options;
  if (!recipe.data.header.empty()) options.header = recipe.data.header == "yes";
  const bool own = path.empty() && recipe.data.test.empty();
  const std::string& named = training || own ? recipe.data.train : path.empty() ? recipe.data.test : path;
  std::shared_ptr<const data::Dataset> dataset =
      encoder ? open_known(recipe, *encoder, expand(named)) : data::open_dataset(expand(named), options);
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
  if (!encoder.labelled()) {
    out->labels.resize(static_cast<size_t>(dataset.count()));
    std::iota(out->labels.begin(), out->labels.end(), int64_t{0});
  }
  out->classes = encoder.classes();
  out->path = dataset.path();
  out->tried = dataset.count();
  out->notes = dataset.notes();
  out->notes.push_back(fmt::format("{}: {} rows, {} columns of numbers, {} of categories, {} classes",
                                   dataset.path(), dataset.count(), encoder.dense().size(),
                                   encoder.categories().size(), encoder.classes().size()));
  return out;
}

/// Before a table is encoded: it is in memory as a whole.
void require_table_memory(const Recipe& recipe, const data::Dataset& dataset,
                          const data::TableEncoder& encoder, int64_t batch) {
  const auto numbers = static_cast<int64_t>(encoder.dense().size()),
             categories = static_cast<int64_t>(encoder.categories().size());
  const auto row =
      numbers * static_cast<int64_t>(sizeof(float)) + categories * static_cast<int64_t>(sizeof(int64_t));
  require_memory(recipe, data::array_memory(dataset.count(), row, batch),
                 fmt::format("{}: {} rows of {} columns of numbers and {} of categories", dataset.path(),
                             dataset.count(), numbers, categories),
                 "take less of it by data.where or data.leave_out");
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

namespace {

std::unique_ptr<data::Feed> training_feed(const Recipe& recipe,
                                          const std::shared_ptr<const data::Dataset>& dataset,
                                          std::string& encoding, const ReadProgress& progress) {
  data::ArrayFeedOptions options = feed_options(recipe, true);
  if (is_table(recipe)) {
    data::TableOptions table;
    table.label = recipe.data.label;
    table.trim = recipe.data.label_trim;
    table.categories = recipe.data.categories;
    table.leave_out = recipe.data.leave_out;
    const auto encoder = data::TableEncoder::learn(*dataset, table);
    encoding = encoder.json();
    require_table_memory(recipe, *dataset, encoder, options.batch);
    return data::array_feed(table_rows(*dataset, encoder, progress), std::move(options));
  }
  auto rows = sound_rows(dataset, recipe, {}, true, options.batch, progress);
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

}  // namespace

std::unique_ptr<data::Feed> training_arrays(const Recipe& recipe, std::string& encoding,
                                            const ReadProgress& progress) {
  return training_feed(recipe, open_part(recipe, "", true), encoding, progress);
}

ArraysAtStep arrays_at_step(const Recipe& recipe, int64_t step) {
  ArraysAtStep at{open_part(recipe, "", true), nullptr};
  std::string encoding;
  at.feed = training_feed(recipe, at.samples, encoding, nullptr);
  at.feed->seek(cursor_at_step(*at.feed, step));
  return at;
}

std::unique_ptr<data::Feed> test_arrays(const Recipe& recipe, const std::string& encoding,
                                        const std::string& path, const ReadProgress& progress) {
  if (is_table(recipe)) {
    const auto encoder = data::TableEncoder::parse(encoding);
    const auto dataset = open_part(recipe, path, false, &encoder);
    require_table_memory(recipe, *dataset, encoder, recipe.eval.batch);
    return data::array_feed(table_rows(*dataset, encoder, progress), feed_options(recipe, false));
  }
  const auto dataset = open_part(recipe, path, false);
  const SoundEncoding sounds = SoundEncoding::parse(encoding);
  auto rows = sound_rows(dataset, recipe, sounds.classes, true, recipe.eval.batch, progress);
  normalise(*rows, sounds);
  return data::array_feed(std::move(rows), feed_options(recipe, false));
}

std::shared_ptr<const data::Dataset> open_rows(const Recipe& recipe, const std::string& encoding,
                                               const std::string& path) {
  return is_table(recipe) ? open_known(recipe, data::TableEncoder::parse(encoding).unlabelled(), path)
                          : std::shared_ptr<const data::Dataset>(data::open_dataset(path));
}

std::shared_ptr<const data::ArrayData> unlabelled_arrays(const Recipe& recipe, const std::string& encoding,
                                                         std::shared_ptr<const data::Dataset> dataset) {
  if (!is_table(recipe)) {
    auto rows = sound_rows(std::move(dataset), recipe, {}, false, 0, nullptr);
    normalise(*rows, SoundEncoding::parse(encoding));
    return rows;
  }
  return table_rows(*dataset, data::TableEncoder::parse(encoding).unlabelled(), nullptr);
}

std::optional<data::Field> raw_input(const Session& session) {
  const Recipe& recipe = session.recipe;
  const Dim batch = Dim::named("batch");
  if (!has_arrays(recipe)) return std::nullopt;
  if (!is_table(recipe)) return data::Field{"sounds", {f32, {batch, sound_samples(recipe)}}};
  const int64_t columns = data::raw_numbers(data::TableEncoder::parse(session.encoding).dense());
  if (columns == 0) return std::nullopt;
  return data::Field{"numbers", {f64, {batch, columns}}};
}

Value encode_raw(const Session& session, Graph& graph, Value raw) {
  if (is_table(session.recipe))
    return data::encode_numbers(graph, raw, data::TableEncoder::parse(session.encoding).dense());
  return sound_graph(graph, raw, session.recipe, SoundEncoding::parse(session.encoding));
}

Session make_array_session(Recipe recipe, const std::string& encoding) {
  const Dim batch = Dim::named("batch");
  std::vector<data::Field> inputs;
  std::vector<std::string> classes;
  nn::Model model;
  if (is_table(recipe)) {
    const auto encoder = data::TableEncoder::parse(encoding);
    nn::ModelOptions table;
    table.numbers = static_cast<int64_t>(encoder.dense().size());
    for (const auto& category : encoder.categories()) table.ids.push_back(category.ids);
    classes = encoder.classes();
    table.classes = static_cast<int64_t>(classes.size());
    table.width = recipe.model.width;
    table.depth = recipe.model.depth;
    table.dropout = recipe.model.dropout;
    model = nn::make_model("table", table);
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
