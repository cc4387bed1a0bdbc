#include "data/tools/pack/pack.h"

#include <filesystem>
#include <fmt/core.h>

#include <millrace/feed.h>

#include "base/format.h"
#include "base/seconds_since.h"
#include "base/words.h"
#include "cli/data_notes.h"
#include "cli/interrupt.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "data/formats/open_dataset.h"
#include "data/table/contents.h"
#include "data/table/labels.h"
#include "data/table/query.h"
#include "data/table/select.h"
#include "data/table/split.h"
#include "data/tools/pack/pack_source.h"
#include "task/recipe.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// The splits of a folder that has train/, test/ … each becomes shards of its own; nothing when it has none.
std::vector<std::string> splits_of(const std::string& source) {
  std::vector<std::string> splits;
  for (const char* name : {"train", "val", "valid", "validation", "test"})
    if (fs::is_directory(fs::path(source) / name)) splits.push_back(name);
  return splits;
}

/// "a/train.tar" → "train", "letters/" → "letters".
std::string name_of(const std::string& source) {
  fs::path path = fs::path(source).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename().string();
  return name.substr(0, name.find_first_of(".-{*?["));
}

/// "a, b" → {"a", "b"}
std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> items = split_list(text);
  for (std::string& item : items) item.erase(0, item.find_first_not_of(' '));
  std::erase(items, "");
  return items;
}

struct PackArguments {
  std::string source, out, name, where, split, split_by = "random", augmentations;
  data::PackOptions options;
  int64_t shard_mb = 3000, seed = 1, max_side = 0, resize = 0, quality = 0, versions = 0;
  bool no_index = false;
};

/// Pictures with their classes where the data has both, else its columns.
std::shared_ptr<const data::Dataset> open_packed(const std::string& path, const std::string& where) {
  const std::shared_ptr<const data::Dataset> columns = data::open_dataset(path);
  const bool classes =
      data::Contents::in(*columns, data::ColumnKind::picture) && data::find_label(*columns).has_value();
  auto set = classes ? data::labelled(columns, data::ColumnKind::picture) : columns;
  if (where.empty()) return set;
  // The classes stay those of the whole.
  return data::select(std::move(set), data::chosen(*columns, data::Query::parse(where)));
}

/// The samples and the names of their shards.
std::vector<data::PackPart> parts_of(const PackArguments& a) {
  std::vector<data::PackPart> parts;
  const std::string source = task::expand(a.source);
  if (!a.split.empty()) {
    const auto rule = data::SplitRule::parse(a.split, a.split_by, static_cast<uint64_t>(a.seed));
    const std::shared_ptr<const data::Dataset> whole = open_packed(source, a.where);
    auto split = data::split_samples(*whole, rule);
    for (size_t p = 0; p < split.size(); ++p)
      parts.push_back({data::select(whole, std::move(split[p])),
                       a.name.empty() ? rule.parts[p].name : a.name + "-" + rule.parts[p].name});
    return parts;
  }
  const auto folders = a.name.empty() ? splits_of(source) : std::vector<std::string>();
  for (const std::string& folder : folders)
    parts.push_back({open_packed((fs::path(source) / folder).string(), a.where), folder});
  if (folders.empty())
    parts.push_back({open_packed(source, a.where), a.name.empty() ? name_of(source) : a.name});
  return parts;
}

/// Rate and time left, on what takes longer than two seconds.
class Meter {
 public:
  explicit Meter(Progress& progress) : progress_(progress) {}
  void show(int64_t done, int64_t total) {
    if (done < last_ || first_ < 0) {  // another part begins
      start_ = Clock::now();
      first_ = done - 1;
    }
    last_ = done;
    const double passed = seconds_since(start_);
    if (passed < 2 || !progress_.due(done == total)) return;
    const double rate = static_cast<double>(done - first_) / passed;
    progress_.update(
        fmt::format("{} of {} samples  {} samples/s  {} left", thousands(done), thousands(total),
                    thousands(std::llround(rate)), duration_text(static_cast<double>(total - done) / rate)),
        done == total);
  }

 private:
  Progress& progress_;
  Clock::time_point start_;
  int64_t first_ = -1, last_ = 0;
};

/// 0, or 1 when something differs.
int report_packed(Progress& progress, const std::vector<data::PackPart>& parts,
                  const std::vector<data::PackResult>& results, bool verified) {
  int code = 0;
  for (size_t p = 0; p < results.size(); ++p) {
    const data::PackResult& result = results[p];
    const size_t classes = data::PackSource(*parts[p].set).classes().size();
    progress.print(fmt::format("{}: {} {}, {:.1f} MB", result.pattern, thousands(result.samples),
                               classes > 0 ? fmt::format("pictures of {} classes", classes) : "samples",
                               static_cast<double>(result.bytes) / 1e6));
    for (const data::BadSample& bad : result.bad)
      progress.print(fmt::format("left out: {}: {}", bad.name, bad.why));
    if (!result.bad.empty())
      progress.print(fmt::format("{} of {} samples are bad and were left out",
                                 thousands(static_cast<int64_t>(result.bad.size())),
                                 thousands(parts[p].set->count())));
    for (const std::string& difference : result.differences) progress.print("differs: " + difference);
    if (verified)
      progress.print(
          result.different == 0
              ? fmt::format("{}: read back, all is as in the source", parts[p].name)
              : fmt::format("{}: {} differences from the source; pack it again, and look at the disk",
                            parts[p].name, thousands(result.different)));
    if (result.different > 0) code = 1;
  }
  return code;
}

int run_pack(PackArguments& a) {
  require_named(a.out, "OUT");
  data::PackOptions& options = a.options;
  options.shards.bytes = static_cast<uint64_t>(a.shard_mb) * 1'000'000;
  const auto small = [](int64_t value) { return static_cast<int>(std::clamp<int64_t>(value, -1, 1 << 30)); };
  options.pictures.max_side = small(a.max_side);
  options.pictures.resize = small(a.resize);
  options.pictures.quality = small(a.quality);
  options.pictures.versions = small(a.versions);
  options.pictures.augmentations = list_of(a.augmentations);
  options.pictures.seed = static_cast<uint64_t>(a.seed);
  options.pictures.check = options.pictures.check || options.verify;
  options.index = !a.no_index;
  if (options.format == "webdataset") options.format.clear();
  catch_interrupts();
  Progress progress;
  Meter meter(progress);
  options.progress = [&](int64_t done, int64_t total) { meter.show(done, total); };
  options.note = [&](const std::string& text) { progress.print(text); };
  options.stop = [] { return interrupted(); };
  const std::vector<data::PackPart> parts = parts_of(a);
  for (const std::string& note : parts[0].set->notes()) fmt::print(stderr, "{}\n", note);
  const auto results = data::pack(parts, a.out, options);
  if (results.empty()) {
    progress.print("interrupted; the same command goes on behind the shards that are complete");
    return 130;
  }
  if (!options.format.empty())
    if (const std::string line = lost_names("label", data::PackSource(*parts[0].set).classes());
        !line.empty())
      progress.print(line);
  return report_packed(progress, parts, results, options.verify);
}

Action declare_pack(Command& command) {
  auto a = std::make_shared<PackArguments>();
  command
      .positional("SOURCE", a->source, "a folder with a folder a class, a tar of them, shards, an IDX file …")
      .positional("OUT", a->out, "folder for the shards")
      .option("--name", a->name, "shards are called NAME-000000.tar …; by default as the source")
      .option("--where", a->where,
              "only samples that this is true for, as \"label in (3, 5) and width > 200\"")
      .option("--shard-samples", a->options.shards.samples, "at most so many samples a shard")
      .option("--shard-mb", a->shard_mb, "at most so many MB a shard")
      .option("--max-side", a->max_side, "pictures whose longer side is longer are shrunk to it")
      .option("--resize", a->resize, "pictures whose shorter side is longer are shrunk to it")
      .option("--quality", a->quality, "of JPEG files that are made, 1 to 100 (90); alone: all are made anew")
      .option("--split", a->split, "shards for each part: train=0.8,val=0.1,test=0.1")
      .option("--split-by", a->split_by, "random, stratified (by class), group:COLUMN or time:COLUMN")
      .option("--seed", a->seed, "of the split and the augmentations")
      .option("--augment", a->versions, "so many versions of each picture instead of it")
      .option("--augmentations", a->augmentations,
              "as input.augment of a recipe: \"random-resized-crop 64, flip\"")
      .option("--format", a->options.format, "another format than WebDataset: tfrecord, recordio, beton, mds")
      .flag("--keep-keys", a->options.keep_keys, "keys are those of the source, not numbers")
      .flag("--no-index", a->no_index, "no index (FILE.mrx) beside the shards")
      .flag("--check", a->options.pictures.check, "decode every picture and leave out bad ones")
      .flag("--verify", a->options.verify, "read everything back and compare it with the source; checks, too")
      .flag("--force", a->options.force,
            "replace files that are not of an earlier packing under this name; the source's never")
      .option("--most-bad", a->options.most_bad, "so many bad samples may be left out (1 % of the source)")
      .footer(
          "A folder with train/ and test/ in it becomes train-000000.tar … and test-000000.tar …\n"
          "After an interruption the same command goes on behind the shards that are complete.\n\n"
          "  millrace pack data/letters data/packed\n"
          "  millrace pack photos packed --max-side 512 --split train=0.8,val=0.1,test=0.1 --split-by "
          "stratified\n"
          "  millrace pack ${MILLRACE_DATA}/cifar10/train.tar cifar10 --shard-samples 10000\n");
  return [a] { return run_pack(*a); };
}

}  // namespace

MILLRACE_VERB(pack){"pack", "pack samples from any source into indexed WebDataset shards", declare_pack, 20};

}  // namespace millrace::cli
