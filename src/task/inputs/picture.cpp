// Pictures: planes of one size, normalised.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "base/parallel_for.h"
#include "base/size_text.h"
#include "data/augment/augment.h"
#include "data/augment/mix.h"
#include "data/codecs/pictures/decode.h"
#include "data/feed/picture_part.h"
#include "data/feed/rows_ahead.h"
#include "data/io/location.h"
#include "data/table/select.h"
#include "data/tools/statistics/repeated_pictures.h"
#include "task/input.h"
#include "task/inputs/own_column.h"
#include "task/inputs/own_files.h"
#include "task/inputs/picture_colours.h"
#include "task/inputs/picture_draft.h"
#include "task/inputs/picture_frames.h"
#include "task/inputs/picture_views.h"
#include "task/inputs/stored_size.h"
#include "task/inputs/suiting.h"
#include "task/json_text.h"

namespace millrace::task {
namespace {

struct LearntPictures {
  data::Extent extent;
  /// Of each channel, of values 0…1.
  std::vector<double> mean, deviation;
  std::string note = {};    // on pictures whose colours are converted
  std::string column = {};  // where it was the only one
};

/// Pictures as they are for evaluation; with `random` as training has them.
data::PictureOptions picture_options(const Section& section, bool random) {
  const Settings& s = section.settings;
  const data::FrameRule rule = evaluation_frames(s);
  data::PictureOptions options;
  options.column = s.text("column");
  options.resize = rule.resize;
  options.crop = rule.crop;
  options.channels = static_cast<int>(s.integer("channels"));
  options.key = input_key(section);
  if (random) {
    options.augment = s.texts("augment");
    options.mix = s.texts("mix");
  }
  return options;
}

/// Pictures for the statistics: as many as fit, of large ones fewer.
int64_t picture_sample_size(const data::Extent& extent, int64_t count) {
  constexpr int64_t most = 5000, least = 64, memory = int64_t{256} << 20;
  const int64_t fit = memory / std::max<int64_t>(static_cast<int64_t>(extent.bytes()), 1);
  return std::min(count, std::clamp(fit, least, most));
}

/// Training pictures from all over the data, without augmentation: u8 [N, C, H, W]. Bad ones are left out.
Array sample_pictures(const Section& section, const Reading& reading) {
  const auto part = data::picture_part(*reading.samples, picture_options(section, false));
  const data::Extent& extent = part->extent();
  const auto samples =
      data::sample_of(reading.samples, picture_sample_size(extent, reading.samples->count()));
  const int64_t count = samples->count();
  const size_t bytes = extent.bytes();
  std::vector<std::byte> all(static_cast<size_t>(count) * bytes);
  std::vector<char> good(static_cast<size_t>(count));
  const auto ahead = data::ahead_of(*samples, count);
  parallel_parts(count, 64, 0, [&](int64_t first, int64_t end) {
    const auto scratch = part->scratch();
    for (int64_t i = first; i < end; ++i) {
      if (ahead) ahead->reach(static_cast<uint64_t>(i));
      std::byte* const to = all.data() + static_cast<size_t>(i) * bytes;
      good[static_cast<size_t>(i)] = part->read(*samples, i, nullptr, scratch.get(), to).empty();
      if (ahead) ahead->done(static_cast<uint64_t>(i));
    }
  });
  const auto kept = static_cast<int64_t>(std::count(good.begin(), good.end(), 1));
  if (kept == 0)
    fail<InputError>("{}: of {} pictures from all over it none can be decoded; are they {} files?",
                     reading.samples->path(), count, data::picture_kinds());
  Array pictures(u8, {kept, extent.channels, extent.height, extent.width});
  auto* to = reinterpret_cast<std::byte*>(pictures.as<uint8_t>().data());
  for (int64_t i = 0; i < count; ++i)
    if (good[static_cast<size_t>(i)]) {
      std::copy_n(all.data() + static_cast<size_t>(i) * bytes, bytes, to);
      to += bytes;
    }
  return pictures;
}

/// Means and deviations of the channels; one that never changes gets deviation 1.
void measure_pictures(const Array& pictures, LearntPictures& learnt) {
  const auto sizes = pictures.shape().sizes();
  const int64_t count = sizes[0], channels = sizes[1], plane = sizes[2] * sizes[3];
  const uint8_t* const first = pictures.as<uint8_t>().data();
  for (int64_t c = 0; c < channels; ++c) {
    int64_t sum = 0, squares = 0;
    for (int64_t n = 0; n < count; ++n) {
      const uint8_t* pixels = first + (n * channels + c) * plane;
      for (int64_t i = 0; i < plane; ++i) {
        sum += pixels[i];
        squares += pixels[i] * pixels[i];
      }
    }
    const double all = static_cast<double>(count * plane), mean = static_cast<double>(sum) / all;
    const double deviation = std::sqrt(std::max(0.0, static_cast<double>(squares) / all - mean * mean));
    learnt.mean.push_back(mean / 255);
    learnt.deviation.push_back(deviation > 0 ? deviation / 255 : 1);
  }
}

constexpr OwnFiles picture_files = {data::ColumnKind::picture, "picture", data::is_picture_name};

std::string repeated_note(const data::Dataset& training, const data::Dataset& tests,
                          const std::string& column) {
  if (data::is_elsewhere(training.path()) || data::is_elsewhere(tests.path())) return {};  // too slow a look
  constexpr double seconds = 1;
  const data::RepeatedPictures found = data::repeated_pictures(training, tests, column, seconds);
  if (found.repeated == 0) return {};
  std::string line = fmt::format(
      "{} of {} pictures to test on {} among those of training, or nearly ({} = {}): "
      "results on them say little; millrace data stat lists such pictures",
      thousands(found.repeated), thousands(tests.count()), found.repeated == 1 ? "is" : "are", found.test,
      found.train);
  // Large sets take longer than that: what was compared of them.
  std::string compared;
  for (const auto& [looked, by] : {std::pair(found.bytes, "bytes"), std::pair(found.looks, "looks")})
    if (looked.tests < tests.count() || looked.trained < training.count())
      compared +=
          fmt::format("{}by their {} {} of {} to test on with {} of {} to train on",
                      compared.empty() ? "" : ", ", by, thousands(looked.tests), thousands(tests.count()),
                      thousands(looked.trained), thousands(training.count()));
  if (!compared.empty()) line += fmt::format(" (compared were {})", compared);
  return line;
}

class PictureInput final : public Input {
 public:
  PictureInput(Section section, LearntPictures learnt)
      : Input(std::move(section)),
        learnt_(std::move(learnt)),
        normalise_(std::make_shared<nn::Normalise>(learnt_.mean, learnt_.deviation)) {
    // The run's recipe then says them: trained again on other data, it normalises alike.
    section_.set("channels", int64_t{learnt_.extent.channels});
    if (section_.settings.numbers("mean").empty()) {
      section_.set("mean", learnt_.mean);
      section_.set("std", learnt_.deviation);
    }
  }

  std::string encoding() const override {
    const data::Extent& e = learnt_.extent;
    nlohmann::ordered_json json = {{"channels", e.channels},
                                   {"height", e.height},
                                   {"width", e.width},
                                   {"mean", learnt_.mean},
                                   {"std", learnt_.deviation}};
    if (!learnt_.column.empty()) json["column"] = learnt_.column;
    return json.dump();
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> lines = {fmt::format("pictures of {}×{}, {}", learnt_.extent.width,
                                                  learnt_.extent.height,
                                                  learnt_.extent.channels == 1 ? "grey" : "colour")};
    if (!learnt_.note.empty()) lines.push_back(learnt_.note);
    return lines;
  }

  std::vector<data::Field> fields() const override {
    const data::Extent& e = learnt_.extent;
    return {{"pictures", {u8, {Dim::named("batch"), e.channels, e.height, e.width}}}};
  }
  std::vector<Tensor> graph(std::span<const Tensor> fields, bool /*training*/) const override {
    return {(*normalise_)(fields[0])};
  }
  void describe(nn::ModelOptions& options) const override {
    options.input = {learnt_.extent.channels, learnt_.extent.height, learnt_.extent.width};
  }
  std::vector<std::string> architectures() const override {
    return suiting_architectures("picture", "convnet");
  }
  bool augments() const override { return !settings().texts("augment").empty(); }
  std::string gives() const override { return "picture"; }

  std::shared_ptr<const data::Part> part(const Reading& reading, Purpose purpose) const override {
    data::PictureOptions options = picture_options(section_, purpose == Purpose::training);
    if (purpose != Purpose::training) {
      if (options.column.empty())
        options.column = same_column(*reading.samples, data::ColumnKind::picture, learnt_.column);
      options.wanted = learnt_.extent;
      options.bring = purpose == Purpose::prediction;
    }
    auto made = data::picture_part(*reading.samples, std::move(options));
    const data::Extent &own = made->extent(), &known = learnt_.extent;
    if (own.channels != known.channels || own.height != known.height || own.width != known.width)
      fail<InputError>("{} has pictures of {}×{} with {} channels, the model takes {}×{} with {}",
                       reading.samples->path(), own.width, own.height, own.channels, known.width,
                       known.height, known.channels);
    return made;
  }

  std::shared_ptr<const data::Dataset> open(const Recipe& /*recipe*/,
                                            const std::vector<std::string>& paths) const override {
    return files_or_dataset(paths, settings().text("column"), picture_files);
  }
  std::vector<std::string> paths(const std::string& argument) const override {
    return paths_of(argument, picture_files);
  }
  bool together(const std::string& path) const override { return is_own_file(path, picture_files); }

  int views() const override { return picture_views(settings().text("tta")); }
  std::vector<Array> view(std::span<const Array> arrays, int view) const override {
    return {picture_view(arrays[0], view)};
  }
  float view_weight(int view) const override { return picture_view_weight(view); }
  std::optional<data::Frame> frame(int height, int width) const override {
    return prepared_frame(settings(), learnt_.extent, height, width);
  }

  std::optional<Array> picture(std::span<const Array> row) const override {
    const data::Extent& e = learnt_.extent;
    Array planes(u8, {e.channels, e.height, e.width});
    const auto from = row[0].as<uint8_t>();
    if (from.size() != e.bytes()) fail<InternalError>("a row of pictures is {}", row[0].type().str());
    std::copy(from.begin(), from.end(), planes.as<uint8_t>().begin());
    return planes;
  }
  std::string text(std::span<const Array> /*row*/) const override {
    return fmt::format("{}x{} {}", learnt_.extent.width, learnt_.extent.height,
                       learnt_.extent.channels == 1 ? "grey" : "colour");
  }
  std::optional<Array> fitting(const Reading& reading) const override {
    return sample_pictures(section_, reading);
  }
  CheaperSamples cheaper(const data::Dataset& samples) const override {
    const StoredSize stored = worthwhile_size(settings(), samples);
    if (stored.side == 0) return {};
    return {fmt::format("millrace pack --resize {}", stored.side), stored.cost};
  }
  std::string repeated(const data::Dataset& training, const data::Dataset& tests) const override {
    return repeated_note(training, tests, settings().text("column"));
  }

 private:
  LearntPictures learnt_;
  std::shared_ptr<nn::Normalise> normalise_;
};

void check_pictures(const Section& section, const Recipe& recipe) {
  const Settings& s = section.settings;
  const std::string key = input_key(section);
  if (s.numbers("mean").size() != s.numbers("std").size())
    fail<InputError>("{0}.mean and {0}.std need one number a channel each", key);
  if (s.integer("channels") == 2) fail<InputError>("{}.channels = 2: wanted is 1 (grey) or 3 (colour)", key);
  if (s.integer("resize") > 0 && s.integer("crop") > s.integer("resize"))
    fail<InputError>(
        "{0}.crop = {1} is larger than {0}.resize = {2}, the shorter side of the resized pictures", key,
        s.integer("crop"), s.integer("resize"));
  try {
    (void)data::Augmenter(s.texts("augment"));
  } catch (const InputError& error) {
    fail<InputError>("{}.augment: {}", key, error.what());
  }
  try {
    (void)data::Mixer(s.texts("mix"));
  } catch (const InputError& error) {
    fail<InputError>("{}.mix: {}", key, error.what());
  }
  if (!s.texts("mix").empty() && recipe.inputs.size() > 1)
    fail<InputError>(
        "{}.mix mixes samples and their targets, and the other inputs would still be those of one sample: it "
        "goes with one input only; leave it out",
        key);
}

std::unique_ptr<Input> learn_pictures(const Section& said, const Reading& reading) {
  // Pictures are brought to the colours that most of them have, unless the recipe says which.
  // Each look at a server is a request of its own, for a whole picture.
  const int64_t most_looks = data::is_elsewhere(reading.samples->path()) ? 32 : 2000;
  Section section = said;
  section.set("column", own_column(said, reading, data::ColumnKind::picture));
  const PictureColours colours =
      picture_colours(*reading.samples, section.settings.text("column"), most_looks);
  if (section.settings.integer("channels") == 0 && colours.looked > 0)
    section.set("channels", int64_t{colours.channels()});
  const Settings& s = section.settings;
  const auto part = data::picture_part(*reading.samples, picture_options(section, true));
  LearntPictures learnt{part->extent(), s.numbers("mean"), s.numbers("std")};
  learnt.column = only_column(*reading.samples, data::ColumnKind::picture);
  learnt.note = colours.note(learnt.extent.channels, reading.samples->count() <= most_looks);
  if (learnt.mean.size() != learnt.deviation.size())
    fail<InputError>("{0}.mean and {0}.std need one number a channel each", input_key(section));
  if (learnt.mean.empty()) measure_pictures(sample_pictures(section, reading), learnt);
  if (learnt.mean.size() != static_cast<size_t>(learnt.extent.channels))
    fail<InputError>("{}.mean has {} numbers, the pictures have {} channels", input_key(section),
                     learnt.mean.size(), learnt.extent.channels);
  return std::make_unique<PictureInput>(section, std::move(learnt));
}

std::unique_ptr<Input> load_pictures(const Section& section, const std::string& encoding) {
  LearntPictures learnt;
  read_encoding(encoding, "the pictures", [&](const nlohmann::json& json) {
    learnt.extent = {json.at("channels").get<int>(), json.at("height").get<int>(),
                     json.at("width").get<int>()};
    json.at("mean").get_to(learnt.mean);
    json.at("std").get_to(learnt.deviation);
    learnt.column = json.value("column", std::string());
  });
  const data::Extent& e = learnt.extent;
  const auto channels = static_cast<size_t>(std::max(e.channels, 0));
  if ((e.channels != 1 && e.channels != 3) || e.height < 1 || e.width < 1 || learnt.mean.size() != channels ||
      learnt.deviation.size() != channels)
    fail<InputError>("what the checkpoint knows of the pictures is damaged: its numbers do not go together");
  const auto another = [&](const char* name, const std::vector<double>& measured) {
    const std::vector<double>& said = section.settings.numbers(name);
    return !said.empty() && said != measured;
  };
  if (another("mean", learnt.mean) || another("std", learnt.deviation))
    fail<InputError>("{0}.mean and {0}.std are others than the model was trained with", input_key(section));
  return std::make_unique<PictureInput>(section, std::move(learnt));
}

SettingWords augmentation_words() {
  SettingWords help{"Augmentations", "augment", {}};
  const std::vector<std::string> usages = data::augmentation_usages();
  for (const data::AugmentationKind* kind : data::augmentations().all())
    help.words.push_back({usages[help.words.size()], kind->doc, kind->settings});
  return help;
}

}  // namespace

MILLRACE_INPUT(picture){
    .name = "picture",
    .doc = "pictures (JPEG, PNG …) of one size, or brought to one",
    .unit = "pictures",
    .settings =
        {{"column", "column of the pictures; empty: those of a sample, whichever column they lie in",
          std::string()},
         {"augment",
          "random changes of training pictures, in order: \"random-resized-crop 224\", \"pad-crop 2\", "
          "\"flip\", \"colour-jitter brightness=0.4\" …",
          std::vector<std::string>()},
         {"mix",
          "samples of a batch mixed with each other, and so their targets: \"mixup 0.2\", \"cutmix 1\"",
          std::vector<std::string>()},
         {"resize",
          "side in pixels that pictures are resized to, or with crop their shorter side; 0: as they are. "
          "Where augment begins with random-resized-crop, pictures are resized and cropped only to evaluate",
          int64_t{0}, 0, 4096},
         {"crop", "side of the square that is cut out of the middle, after resizing; 0: nothing is cut",
          int64_t{0}, 0, 4096},
         {"channels", "1 grey, 3 colour, 0: as most of the pictures are", int64_t{0}, 0, 3},
         {"mean",
          "means of the channels (of 0…1) that normalising subtracts; empty: measured on the training "
          "pictures",
          std::vector<double>(), -1e6, 1e6},
         {"std", "standard deviations that normalising divides by; empty: measured", std::vector<double>(),
          1e-6, 1e6},
         {"tta",
          "test-time augmentation of the last test and of millrace eval: none, flip (the picture and its "
          "mirror image) or shift (also shifted by a pixel); earlier tests see each picture once",
          std::string("none"),
          -1e18,
          1e18,
          {"none", "flip", "shift"},
          true}},
    .recognise =
        [](const data::Dataset& samples, const std::vector<std::string>& taken) {
          return free_columns(samples, data::ColumnKind::picture, taken);
        },
    .rank = 40,
    .check = check_pictures,
    .learn = learn_pictures,
    .load = load_pictures,
    .draft = draft_pictures,
    .words = augmentation_words,
};

}  // namespace millrace::task
