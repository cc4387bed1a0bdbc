#include "data/tools/pack/pack.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "data/formats/overwrite.h"
#include "data/formats/shard_index.h"
#include "data/table/index.h"
#include "data/tools/pack/pack_journal.h"
#include "data/tools/pack/pack_samples.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

void check(const std::vector<PackPart>& parts, const PackOptions& options) {
  for (const PackPart& part : parts)
    if (part.name.empty() || part.name.find_first_of("/.{}*?[]") != std::string::npos)
      fail<InputError>("\"{}\" is no name for shards; use letters, digits, - and _", part.name);
  if (options.shards.samples < 1)
    fail<InputError>("{} samples a shard: at least one is needed", options.shards.samples);
  options.pictures.validate();
  for (const PackPart& part : parts) PackedSamples::check(PackSource(*part.set), options);
  if (!options.format.empty() && !formats().at(options.format).create)
    fail<InputError>("{} can only be read; see millrace data convert --help", options.format);
}

/// All that changes what is written.
std::string fingerprint_of(const PackPart& part, const PackOptions& o) {
  const PictureRule& p = o.pictures;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", source_fingerprint(PackSource(*part.set)),
                     part.name, o.shards.samples, o.shards.bytes, p.max_side, p.resize, p.quality, p.versions,
                     p.seed, p.check, o.keep_keys, o.format, o.index, fmt::join(p.augmentations, ";"));
}

/// "NAME-000003.tar" for the extension ".tar".
bool is_shard(const std::string& file, const std::string& name, const std::string& extension) {
  constexpr size_t digits = 6;
  if (file.size() < name.size() + 1 + digits + extension.size() || !file.starts_with(name + "-") ||
      !file.ends_with(extension))
    return false;
  const std::string number = file.substr(name.size() + 1, file.size() - name.size() - 1 - extension.size());
  return std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// Shards of an earlier packing under this name give way to those of this one; other files do not.
void require_own(const PackPart& part, const fs::path& out, const PackOptions& options) {
  const fs::path first = shard_path(out, part.name, 0, options), sidecar = shard_index_path(first);
  std::set<std::string> listed;
  // Where packing was interrupted, whatever stands in its journal, shards of that name are its own.
  std::error_code error;
  const bool begun = fs::exists(journal_path(out, part.name), error);
  const auto index = sidecar.empty() ? std::nullopt : read_shard_index(sidecar);
  if (index)
    for (const ShardEntry& shard : index->shards) listed.insert(shard.name);
  std::vector<fs::path> own, others;
  if (!sidecar.empty()) (index ? own : others).push_back(sidecar);
  for (fs::directory_iterator at(out, error), end; !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().string();
    if (is_shard(file, part.name, first.extension().string()))
      (begun || listed.contains(file) ? own : others).push_back(at->path());
  }
  require_free(*part.set, own, true);
  require_free(*part.set, others, options.force);
}

class Packing {
 public:
  Packing(const PackPart& part, fs::path out, const PackOptions& options)
      : source_(*part.set),
        name_(part.name),
        out_(std::move(out)),
        options_(options),
        most_bad_(options.most_bad >= 0 ? options.most_bad : source_.count() / 100) {
    const fs::path journal_file = journal_path(out_, name_);
    journal_.fingerprint = fingerprint_of(part, options);
    auto old = read_journal(journal_file);
    if (!old) return;
    remove_unfinished(out_, [this](const std::string& file) {
      return (file.starts_with(name_ + "-") || file.starts_with(name_ + ".")) &&
             file.find(".tmp-") != std::string::npos;
    });
    if (old->fingerprint != journal_.fingerprint || old->done > source_.count()) {
      note(fmt::format(
          "{}: was left unfinished by another command, or of data that has changed since; it begins anew",
          (out_ / name_).string()));
      return;
    }
    for (const ShardEntry& shard : old->shards)
      if (!is_there(shard)) {
        note(fmt::format("{}: has changed since packing was interrupted; it begins anew",
                         (out_ / shard.name).string()));
        return;
      }
    journal_ = std::move(*old);
    if (journal_.done > 0)
      note(fmt::format("{}: goes on behind {} complete shards, {} of {} samples", (out_ / name_).string(),
                       journal_.shards.size(), journal_.done, source_.count()));
  }

  /// False when it was stopped.
  bool run() {
    if (journal_.complete) return true;
    save();
    PackedSamples samples(source_, options_, journal_.done);
    for (int64_t i = journal_.done; i < source_.count(); ++i) {
      if (options_.stop && options_.stop()) return false;
      const PackedSample sample = samples.next();
      // All versions of a sample lie in one shard: packing goes on between samples.
      if (shard_ && !sample.rows.empty() && belongs_to_next(sample.rows)) finish_shard(i);
      if (!sample.bad.empty()) leave_out(i, sample.bad);
      for (const PackedRow& row : sample.rows) {
        if (!shard_)
          shard_ = create_sink(shard_path(out_, name_, journal_.shards.size(), options_), source_, options_);
        shard_->add(row);
      }
      if (options_.progress) options_.progress(i + 1, source_.count());
    }
    if (shard_) finish_shard(source_.count());
    if (journal_.shards.empty())
      fail<InputError>("{}: no sample is good; nothing was written", source_.set().path());
    finish();
    return true;
  }

  PackResult result() {
    PackResult result;
    result.samples = journal_.samples;
    result.shards = static_cast<int64_t>(journal_.shards.size());
    for (const ShardEntry& shard : journal_.shards) result.bytes += shard.bytes;
    result.bad = journal_.bad;
    const fs::path first = shard_path(out_, name_, 0, options_);
    result.pattern = result.shards == 1 ? first.string()
                                        : (out_ / fmt::format("{}-{{000000..{:06}}}{}", name_,
                                                              result.shards - 1, first.extension().string()))
                                              .string();
    if (options_.verify) verify_pack(source_, out_, journal_.shards, options_, result);
    return result;
  }

  void remove_journal() {
    std::error_code ignored;
    fs::remove(journal_path(out_, name_), ignored);
  }

 private:
  void note(const std::string& text) const {
    if (options_.note) options_.note(text);
  }
  void save() { write_journal(journal_path(out_, name_), journal_); }

  bool is_there(const ShardEntry& shard) const {
    std::error_code error;
    const fs::path path = out_ / shard.name;
    if (fs::is_directory(path, error)) return true;
    return fs::is_regular_file(path, error) && fs::file_size(path, error) == shard.bytes;
  }

  bool belongs_to_next(const std::vector<PackedRow>& rows) const {
    return shard_->samples() + static_cast<int64_t>(rows.size()) > options_.shards.samples ||
           shard_->full(rows[0], options_.shards);
  }

  /// Samples up to `done` are in complete shards.
  void finish_shard(int64_t done) {
    journal_.samples += shard_->samples();
    journal_.shards.push_back(shard_->finish());
    shard_.reset();
    const std::string path = (out_ / journal_.shards.back().name).string();
    std::error_code ignored;
    fs::remove(index_path(path), ignored);  // of an older file
    if (options_.index && options_.format != "mds") {
      const auto dataset = open_dataset(path, OpenOptions{.use_indices = false});
      if (!dataset->files().empty() && dataset->extent(0)) write_indices(*dataset);
    }
    journal_.done = done;
    save();
  }

  void leave_out(int64_t index, const std::string& why) {
    journal_.bad.push_back({index, source_.set().name(index), why});
    if (static_cast<int64_t>(journal_.bad.size()) <= most_bad_) return;
    std::string list;
    for (size_t b = 0; b < journal_.bad.size() && b < 5; ++b)
      list += fmt::format("\n  {}: {}", journal_.bad[b].name, journal_.bad[b].why);
    fail<InputError>(
        "{}: {} bad samples, and {} may be left out (--most-bad); mend or remove them, or allow more:{}",
        source_.set().path(), journal_.bad.size(), most_bad_, list);
  }

  void finish() {
    size_t old_shards = 0;
    if (options_.format.empty()) {
      const fs::path sidecar = shard_index_path(shard_path(out_, name_, 0, options_));
      if (const auto old = read_shard_index(sidecar)) old_shards = old->shards.size();
      write_shard_index(sidecar, {source_.classes(), journal_.shards});
    }
    for (size_t n = journal_.shards.size(); n < old_shards; ++n) {
      std::error_code ignored;
      const fs::path path = shard_path(out_, name_, n, options_);
      fs::remove(path, ignored);
      fs::remove(index_path(path.string()), ignored);
    }
    journal_.complete = true;
    save();
  }

  PackSource source_;
  std::string name_;
  fs::path out_;
  const PackOptions& options_;
  int64_t most_bad_;
  PackJournal journal_;
  std::unique_ptr<PackSink> shard_;
};

}  // namespace

std::vector<PackResult> pack(const std::vector<PackPart>& parts, const fs::path& out,
                             const PackOptions& options) {
  check(parts, options);
  for (const PackPart& part : parts) require_own(part, out, options);
  // Journals stay until all parts are done, or those that are would be packed again.
  std::vector<Packing> packings;
  packings.reserve(parts.size());
  std::vector<PackResult> results;
  for (const PackPart& part : parts) {
    packings.emplace_back(part, out, options);
    if (!packings.back().run()) return {};
  }
  for (Packing& packing : packings) {
    results.push_back(packing.result());
    if (options.stop && options.stop()) return {};
  }
  for (Packing& packing : packings) packing.remove_journal();
  return results;
}

}  // namespace millrace::data
