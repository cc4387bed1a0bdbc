#include "train/datasets.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "base/size_text.h"
#include "data/augment/augment.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/extent.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/loader_options.h"
#include "data/feed/loader_work.h"
#include "data/feed/streams/stream_loader.h"
#include "data/feed/streams/stream_memory.h"
#include "data/feed/streams/stream_order.h"
#include "data/formats/streams/stream.h"
#include "data/table/labels.h"
#include "data/table/select.h"

namespace millrace::train {
namespace {

data::LoaderOptions loader_options(const Recipe& recipe, const std::string& what,
                                   const ReadProgress& progress) {
  data::LoaderOptions options;
  options.seed = static_cast<uint64_t>(recipe.train.seed);
  options.cache_bytes = recipe.data.cache_mb << 20;
  if (!recipe.data.memory.empty())
    options.memory = static_cast<int64_t>(parse_bytes("data.memory", recipe.data.memory));
  const data::FrameRule rule = evaluation_frames(recipe);
  options.resize = rule.resize;
  options.crop = rule.crop;
  options.channels = static_cast<int>(recipe.data.channels);
  if (progress) options.progress = [=](int64_t done, int64_t total) { progress(what, done, total); };
  return options;
}

data::LoaderOptions training_options(const Recipe& recipe, const std::string& what,
                                     const ReadProgress& progress) {
  data::LoaderOptions options = loader_options(recipe, what, progress);
  options.batch = recipe.train.batch;
  options.order = recipe.data.order;
  options.augment = recipe.data.augment;
  options.mix = recipe.data.mix;
  return options;
}

/// Pictures for the statistics: as many as fit, of large ones fewer.
int64_t sample_size(const data::Extent& extent, int64_t count) {
  constexpr int64_t most = 5000, least = 64, memory = int64_t{256} << 20;
  const int64_t fit = memory / std::max<int64_t>(static_cast<int64_t>(extent.bytes()), 1);
  return std::min(count, std::clamp(fit, least, most));
}

/// Means and deviations of the sample's pictures.
void measure(PictureSample& sample, const data::Extent& extent) {
  const int64_t wanted = sample.pictures.shape()[0].size(), plane = static_cast<int64_t>(extent.plane());
  const uint8_t* const first = sample.pictures.as<uint8_t>().data();
  for (int64_t c = 0; c < extent.channels; ++c) {
    int64_t sum = 0, squares = 0;
    for (int64_t n = 0; n < wanted; ++n) {
      const uint8_t* pixels = first + (n * extent.channels + c) * plane;
      for (int64_t i = 0; i < plane; ++i) {
        sum += pixels[i];
        squares += pixels[i] * pixels[i];
      }
    }
    const double count = static_cast<double>(wanted * plane), mean = static_cast<double>(sum) / count;
    const double deviation = std::sqrt(std::max(0.0, static_cast<double>(squares) / count - mean * mean));
    sample.mean.push_back(mean / 255);
    sample.std.push_back(deviation > 0 ? deviation / 255 : 1);
  }
}

}  // namespace

data::FrameRule evaluation_frames(const Recipe& recipe) {
  data::FrameRule rule{static_cast<int>(recipe.data.resize), static_cast<int>(recipe.data.crop)};
  if (rule.resize > 0 || rule.crop > 0 || recipe.data.augment.empty()) return rule;
  const data::Augmenter augmenter(std::span(recipe.data.augment).first(1));
  if (augmenter.frames()) rule.resize = rule.crop = augmenter.framed({3, 1, 1}).height;
  return rule;
}

data::Frame prepared_frame(const Recipe& recipe, const data::Extent& extent, int height, int width) {
  const data::FrameRule rule = evaluation_frames(recipe);
  data::Frame frame = data::whole_frame(height, width, extent.height, extent.width);
  if (rule.crop > 0) frame = rule.frame(height, width);
  if (frame.keep.height != extent.height || frame.keep.width != extent.width)
    fail<InternalError>("data.crop = {} gives other pictures than the model's", rule.crop);
  return frame;
}

Array load_prepared(const std::string& path, const Recipe& recipe, const data::Extent& extent) {
  const std::vector<uint8_t> bytes = read_file(path);
  data::StoredPicture sample;
  sample.bytes = bytes;
  data::PictureReader reader;
  Array array(u8, {1, extent.channels, extent.height, extent.width});
  std::string why = reader.open(sample);
  if (why.empty()) {
    const data::Frame frame = prepared_frame(recipe, extent, reader.height(), reader.width());
    why = reader.load(frame, extent.channels, false, array.as<uint8_t>().data());
  }
  if (!why.empty())
    fail<InputError>("{}: cannot be decoded: {}; give a whole {} file", path, why, data::picture_kinds());
  return array;
}

std::shared_ptr<const data::Dataset> open_set(const std::string& text, const data::OpenOptions& options) {
  const std::string path = expand(text);
  try {
    return data::open_dataset(path, options);
  } catch (const Error& error) {
    constexpr std::string_view variable = "${MILLRACE_DATA}";
    std::error_code ignored;
    if (text.find(variable) == std::string::npos || std::filesystem::exists(expand(variable), ignored)) throw;
    fail<InputError>(
        "{}; the folder {} (${{MILLRACE_DATA}}) does not exist: set MILLRACE_DATA to the folder that "
        "holds the data sets, which docs/data.md lists",
        error.what(), expand(variable));
  }
}

std::shared_ptr<const data::Dataset> open_named(const std::string& text, const std::string& where) {
  const auto columns = open_set(text);
  auto pictures = data::labelled(columns, data::ColumnKind::picture);
  if (where.empty()) return pictures;
  return data::select(std::move(pictures), data::chosen(*columns, data::Query::parse(where)));
}

std::unique_ptr<data::Loader> training_loader(const Recipe& recipe, const TrainingSource& from,
                                              const ReadProgress& progress) {
  data::LoaderOptions options = training_options(recipe, from.source->path(), progress);
  options.sample_weight = recipe.data.sample_weight;
  options.drop_last = true;
  options.parts = from.parts;
  if (!from.parts.empty()) options.shares = shares_of(recipe, from.parts);
  return std::make_unique<data::Loader>(from.source, std::move(options));
}

std::unique_ptr<data::PictureFeed> training_pictures(const Recipe& recipe, const TrainingSource& from,
                                                     const ReadProgress& progress) {
  return std::make_unique<data::PictureFeed>(training_loader(recipe, from, progress));
}

std::unique_ptr<data::PictureFeed> test_pictures(TestSet set) {
  return std::make_unique<data::PictureFeed>(std::move(set.loader), std::move(set.labels));
}

std::unique_ptr<data::Loader> stream_loader(const Recipe& recipe, const std::vector<std::string>& tests) {
  data::LoaderOptions options = training_options(recipe, recipe.data.train, nullptr);
  options.sample_weight = recipe.data.sample_weight;
  if (!recipe.data.test.empty()) options.memory /= 2;  // as what a stream takes is not known before
  options.epoch_samples =
      recipe.data.epoch_samples > 0 ? recipe.data.epoch_samples : recipe.train.steps * recipe.train.batch;
  std::vector<data::NamedStream> streams;
  const auto open = [&](const std::string& name, const std::string& text) {
    auto stream = data::open_stream(expand(text));
    if (!recipe.data.where.empty()) stream = data::select(std::move(stream), recipe.data.where);
    streams.push_back({name, std::move(stream)});
  };
  if (recipe.data.sources.empty()) open("", recipe.data.train);
  for (const auto& [name, text] : recipe.data.sources) open(name, text);
  // How long streams are nobody knows: without weights they count alike.
  if (!recipe.data.sources.empty())
    options.shares = shares_of(recipe, std::vector<int64_t>(streams.size(), 1));
  const std::vector<std::string> given = classes_of(recipe);
  return std::make_unique<data::Loader>(
      data::streamed(std::move(streams), given.empty() ? tests : given, std::move(options)));
}

std::unique_ptr<data::Loader> loader_at_step(const Recipe& recipe, int64_t step,
                                             std::span<const Applied> journal) {
  if (step < 1) fail<InputError>("step {}: steps are counted from 1", step);
  if (recipe.data.samples != "pictures")
    fail<InputError>("the recipe is of data.samples = \"{}\": this looks at pictures", recipe.data.samples);
  if (!recipe.data.tokenizer.empty())
    fail<InputError>("the recipe is of texts (data.tokenizer): this looks at pictures");
  Recipe at = recipe;
  at.data.cache_mb = 0;
  std::unique_ptr<data::Loader> loader;
  if (!recipe.data.stream)
    loader = training_loader(at, open_training_source(recipe), nullptr);
  else if (recipe.data.classes.empty())
    loader = stream_loader(at, data::Labels(*open_named(recipe.data.test)).names());
  else
    loader = stream_loader(at, {});
  // With the shares of the time: from one change of them to the next.
  int64_t done = 0;
  for (const Applied& entry : journal) {
    if (entry.step >= step || !entry.change.key.starts_with("data.weights.")) continue;
    loader->skip(entry.step - std::exchange(done, entry.step));
    apply_changes(at, {&entry.change, 1});
    if (at.data.weights.size() == at.data.sources.size()) loader->set_shares(shares_of(at, {}));
  }
  loader->skip(step - 1 - done);
  return loader;
}

data::Cursor cursor_at_step(const data::Feed& feed, int64_t step) {
  if (step < 1) fail<InputError>("step {}: steps are counted from 1", step);
  const int64_t steps = feed.batches_per_epoch();
  data::Cursor cursor = feed.cursor();
  cursor.epoch = (step - 1) / steps;
  cursor.position = (step - 1) % steps * feed.batch_size();
  return cursor;
}

TestSet open_test_set(const std::string& text, const Recipe& recipe, const std::vector<std::string>& classes,
                      const data::Extent& extent, const ReadProgress& progress) {
  return open_test_set(open_named(text), recipe, classes, extent, progress);
}

TestSet open_test_set(std::shared_ptr<const data::Dataset> source, const Recipe& recipe,
                      const std::vector<std::string>& classes, const data::Extent& extent,
                      const ReadProgress& progress) {
  const std::string path = source->path();
  TestSet set;
  const data::Labels labels(*source);
  for (const std::string& name : labels.names()) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end())
      fail<InputError>("{} has the class '{}', which the model does not know (it knows {})", path, name,
                       fmt::join(classes, ", "));
    set.labels.push_back(found - classes.begin());
  }
  data::LoaderOptions options = loader_options(recipe, path, progress);
  options.batch = std::min(recipe.eval.batch, source->count());
  options.channels = extent.channels;
  set.loader = std::make_unique<data::Loader>(std::move(source), std::move(options));
  const data::Extent& own = set.loader->extent();
  if (own.height != extent.height || own.width != extent.width || own.channels != extent.channels)
    fail<InputError>("{} has pictures of {}×{} with {} channels, the model takes {}×{} with {}", path,
                     own.width, own.height, own.channels, extent.width, extent.height, extent.channels);
  return set;
}

PictureSample sample_pictures(const Recipe& recipe, std::shared_ptr<const data::Dataset> source) {
  data::LoaderOptions options = loader_options(recipe, source->path(), nullptr);
  const int64_t total = source->count();
  options.batch = std::min<int64_t>(100, total);
  options.order = "shuffle";
  options.cache_bytes = options.memory = 0;
  data::Loader loader(std::move(source), std::move(options));
  const data::Extent& extent = loader.extent();
  const int64_t plane = static_cast<int64_t>(extent.plane()), channels = extent.channels;
  const int64_t wanted = sample_size(extent, total);

  PictureSample sample;
  sample.pictures = Array(u8, {wanted, channels, extent.height, extent.width});
  uint8_t* const first = sample.pictures.as<uint8_t>().data();
  for (int64_t done = 0; done < wanted;) {
    const data::Batch& batch = loader.next();
    const int64_t part = std::min(batch.valid, wanted - done);
    std::copy_n(batch.pictures.begin(), part * channels * plane, first + done * channels * plane);
    done += part;
  }
  measure(sample, extent);
  return sample;
}

PictureSample sample_stream(const Recipe& recipe, data::Loader& loader) {
  // What the shuffle buffer will hold anyhow need not be waited for twice.
  const int64_t buffer = std::max<int64_t>(data::stream_buffer(recipe.data.order), 64);
  const std::vector<uint8_t> pictures = loader.first_pictures(sample_size(loader.extent(), buffer));
  const data::Extent& extent = loader.extent();
  PictureSample sample;
  const auto count = static_cast<int64_t>(pictures.size() / extent.bytes());
  sample.pictures = Array(u8, {count, extent.channels, extent.height, extent.width});
  std::copy(pictures.begin(), pictures.end(), sample.pictures.as<uint8_t>().begin());
  measure(sample, extent);
  return sample;
}

void require_memory(const Recipe& recipe, int64_t bytes, const std::string& what, const char* fix) {
  if (recipe.data.memory.empty()) return;
  const auto most = static_cast<int64_t>(parse_bytes("data.memory", recipe.data.memory));
  if (bytes > most)
    fail<InputError>("{} take {} with a batch, data.memory leaves {}: raise it by {}, or {}", what,
                     data::memory_text(bytes), data::memory_text(most), data::memory_text(bytes - most), fix);
}

std::vector<std::string> skipped_samples(const data::Feed& feed, std::set<int64_t>& named) {
  std::vector<std::string> lines;
  const auto bad = feed.bad_samples();
  constexpr size_t shown = 5;
  size_t fresh = 0;
  for (const data::BadSample& sample : bad)
    if (named.insert(sample.index).second && fresh++ < shown)
      lines.push_back(fmt::format("skipped {}: {}", sample.name, sample.why));
  if (fresh > shown)
    lines.push_back(fmt::format("skipped {} more {} that cannot be read", fresh - shown, feed.unit()));
  if (fresh > 0)
    lines.push_back(fmt::format("{}: {} of {} {} cannot be read and are left out", feed.path(), bad.size(),
                                feed.streamed() ? feed.tried().samples : feed.count(), feed.unit()));
  return lines;
}

std::vector<std::string> empty_classes(const data::Loader& loader) {
  if (loader.streamed()) return {};
  const data::Labels labels(loader.samples());
  std::vector<int64_t> counts(labels.names().size());
  for (int64_t i = 0; i < loader.count() && labels.there(); ++i) ++counts[static_cast<size_t>(labels[i])];
  for (const data::BadSample& sample : loader.bad_samples())
    if (labels.there()) --counts[static_cast<size_t>(labels[sample.index])];
  std::vector<std::string> lines;
  for (size_t c = 0; c < counts.size(); ++c)
    if (counts[c] == 0)
      lines.push_back(fmt::format("{}: the class '{}' has no pictures that can be read", loader.path(),
                                  labels.names()[c]));
  return lines;
}

}  // namespace millrace::train
