#include "data/pack.h"

#include <filesystem>
#include <fmt/core.h>

#include "cli/progress.h"
#include "cli/verbs.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

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
  return name.substr(0, name.find_first_of(".-"));
}

void pack_one(const std::string& source, const std::string& out, const std::string& name,
              data::PackOptions options) {
  Progress progress;
  options.progress = [&](int64_t done, int64_t total) {
    if (progress.due())
      progress.update(fmt::format("{}: {} of {} pictures", name, thousands(done), thousands(total)));
  };
  const auto opened = data::open_source(source);
  const data::PackResult result = data::pack(*opened, out, name, options);
  progress.print(fmt::format("{}: {} pictures of {} classes, {:.1f} MB", result.pattern,
                             thousands(result.samples), opened->classes().size(),
                             static_cast<double>(result.bytes) / 1e6));
}

}  // namespace

Action declare_pack(Command& command) {
  struct Arguments {
    std::string source, out, name;
    data::PackOptions options;
    int64_t shard_mb = 3000;
  };
  auto a = std::make_shared<Arguments>();
  command
      .positional("SOURCE", a->source, "a folder with a folder a class, a tar of them, shards, an IDX file")
      .positional("OUT", a->out, "folder for the shards")
      .option("--name", a->name, "shards are called NAME-000000.tar …; by default as the source")
      .option("--shard-samples", a->options.shard_samples, "at most so many pictures a shard")
      .option("--shard-mb", a->shard_mb, "at most so many MB a shard")
      .footer(
          "A folder with train/ and test/ in it becomes train-000000.tar … and test-000000.tar …\n\n"
          "  millrace pack data/letters data/packed\n"
          "  millrace pack ${MILLRACE_DATA}/cifar10/train.tar cifar10 --shard-samples 10000\n");
  return [a] {
    a->options.shard_bytes = static_cast<uint64_t>(a->shard_mb) * 1'000'000;
    const auto splits = a->name.empty() ? splits_of(a->source) : std::vector<std::string>();
    if (splits.empty())
      pack_one(a->source, a->out, a->name.empty() ? name_of(a->source) : a->name, a->options);
    for (const std::string& split : splits)
      pack_one((fs::path(a->source) / split).string(), a->out, split, a->options);
    return 0;
  };
}

}  // namespace millrace::cli
