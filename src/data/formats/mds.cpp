// MosaicML streaming's MDS, version 2: a folder with index.json and shards. A shard: u32 samples N, u32
// offsets[N + 1] from the file's begin, its configuration as JSON, samples. A sample: a u32 size for each
// column without a fixed one, then the values. Shards may be compressed whole (mosaicml/streaming,
// streaming/base/format/mds/{reader,writer}.py).
#include "data/formats/mds.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <list>
#include <mutex>
#include <nlohmann/json.hpp>

#include <millrace/file.h>

#include "base/digest.h"
#include "base/format.h"
#include "base/mapped_file.h"
#include "base/number_at.h"
#include "data/formats/content.h"
#include "data/formats/formats.h"
#include "data/io/compression.h"
#include "data/io/location.h"
#include "data/io/open_file.h"

namespace millrace::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Unpacked shards that are kept, in bytes; the last one always is.
constexpr uint64_t most_kept = uint64_t{1} << 30;
constexpr uint64_t most_shard = uint64_t{1} << 32;

uint32_t size_at(const Bytes& bytes, uint64_t at) { return number_at<uint32_t>(bytes.data() + at); }

bool there(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && fs::is_regular_file(path, ignored);
}

/// A file that the index names.
struct Listed {
  std::string path;  // empty: there is none
  uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> hashes;
};

struct Shard {
  Listed raw, packed;
  std::string compression;  // of `packed`: "zstd" or "gz"
  uint64_t samples = 0;
  bool remote = false;
  // Guarded by `lock`: opened, and (nothing: not yet) what is wrong with its checksums.
  std::mutex lock;
  std::shared_ptr<const RandomAccessFile> file;
  std::optional<std::string> verdict;
};

/// The index, read with a message for whatever it lacks.
class MdsIndex {
 public:
  MdsIndex(const RandomAccessFile& file) : path_(file.path()) {
    const Bytes text = file.read(0, file.size());
    json_ = Json::parse(text.text(), nullptr, false);
    if (json_.is_discarded()) refuse("it is no JSON");
  }

  const Json& json() const { return json_; }
  bool remote() const { return is_remote(path_); }
  [[noreturn]] void refuse(const std::string& why) const {
    fail<InputError>("{}: is no index of an MDS data set: {}; copy the file again", path_, why);
  }
  const Json& member(const Json& of, const char* key) const {
    if (!of.is_object() || !of.contains(key)) refuse(fmt::format("'{}' is missing", key));
    return of[key];
  }
  std::string text(const Json& of, const char* key) const {
    const Json& value = member(of, key);
    if (!value.is_string()) refuse(fmt::format("'{}' is no text", key));
    return value.get<std::string>();
  }
  uint64_t number(const Json& of, const char* key) const {
    const Json& value = member(of, key);
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= most_shard)
      refuse(fmt::format("'{}' is no number under 4 GiB", key));
    return value.get<uint64_t>();
  }

  Listed listed(const Json& of, const char* key) const {
    Listed out;
    if (!of.contains(key) || of[key].is_null()) return out;
    const Json& entry = of[key];
    const std::string name = text(entry, "basename");
    // Merged indices name files in folders below; nothing else is any of theirs.
    const fs::path relative(name);
    if (name.empty() || name.find('\0') != name.npos || relative.is_absolute())
      refuse(fmt::format("a shard is called '{}'", name));
    for (const fs::path& part : relative)
      if (part == "..") refuse(fmt::format("a shard is called '{}'", name));
    out.path = (fs::path(path_).parent_path() / relative).string();
    out.bytes = number(entry, "bytes");
    if (entry.contains("hashes") && entry["hashes"].is_object())
      for (const auto& [algorithm, digest] : entry["hashes"].items())
        if (digest.is_string()) out.hashes.emplace_back(algorithm, digest.get<std::string>());
    return out;
  }

 private:
  std::string path_;
  Json json_;
};

class Mds final : public Dataset {
 public:
  Mds(const std::string& path, const Files& files) : Dataset(path) {
    for (const auto& file : files) {
      const MdsIndex index(*file);
      const Json& shards = index.member(index.json(), "shards");
      if (!shards.is_array()) index.refuse("'shards' is no list");
      if (shards.empty()) fail<InputError>("{}: has no shards; copy the folder again", file->path());
      for (const Json& shard : shards) add_shard(index, shard);
    }
    if (starts_.back() == 0) fail<InputError>("{}: has no samples; copy the folder again", path);
    judge_bytes();
  }

  int64_t count() const override { return static_cast<int64_t>(starts_.back()); }
  std::string name(int64_t index) const override {
    const auto [shard, at] = place(index);
    return fmt::format("{}#{}", shards_[shard]->raw.path, at);
  }

  Value read(int64_t index, size_t column) const override {
    if (column >= columns_.size()) fail<InternalError>("{}: there is no column {}", path(), column);
    const auto [which, at] = place(index);
    const auto file = opened(which);
    const auto damaged = [&](const char* why) {
      fail<InputError>("{}#{}: damaged: {}; copy the shard again", shards_[which]->raw.path, at, why);
    };
    const Bytes offsets = file->read(4 + 4 * at, 8);
    const uint64_t begin = size_at(offsets, 0), end = size_at(offsets, 4);
    if (begin > end || end > file->size()) damaged("its place lies outside of the shard");
    if (end - begin < 4 * sizes_) damaged("it is cut off");
    const Bytes head = file->read(begin, 4 * sizes_);
    uint64_t offset = begin + 4 * sizes_, sized = 0;
    for (size_t c = 0;; ++c) {
      const uint64_t size = fixed_[c] ? fixed_[c] : size_at(head, 4 * sized++);
      if (size > end - offset) damaged("its values are longer than it is");
      if (c == column) {
        const std::string where = fmt::format("{}#{}: {}", shards_[which]->raw.path, at, columns_[c].name);
        return encodings_[c].decode(file->read(offset, size), where);
      }
      offset += size;
    }
  }

  /// The shards that are stored as they are; empty when some are compressed.
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override {
    std::call_once(files_opened_, [&] {
      for (const auto& shard : shards_)
        if (!shard->compression.empty()) return;
      Files files;
      for (size_t s = 0; s < shards_.size(); ++s) files.push_back(opened(s));
      files_ = std::move(files);
    });
    return files_;
  }
  std::optional<SampleExtent> extent(int64_t index) const override {
    const auto [shard, at] = place(index);
    if (files().empty()) return std::nullopt;
    const Bytes offsets = files_[shard]->read(4 + 4 * at, 8);
    const uint64_t begin = size_at(offsets, 0), end = size_at(offsets, 4), whole = files_[shard]->size();
    // A damaged place is said when the sample is read.
    if (begin > end || end > whole) return SampleExtent{shard, 4 + 4 * at, 8};
    return SampleExtent{shard, begin, end - begin};
  }
  void will_read(int64_t index) const override {
    const auto [which, at] = place(index);
    const Shard& shard = *shards_[which];
    if (!shard.remote || !shard.compression.empty()) return;
    try {
      const auto file = opened(which);
      const Bytes offsets = file->read(4 + 4 * at, 8);
      const uint64_t begin = size_at(offsets, 0), end = size_at(offsets, 4);
      if (begin <= end && end <= file->size()) file->will_read(begin, end - begin);
    } catch (const Error&) {  // said when the sample is read
    }
  }

  /// Hashes cover whole shards: each is computed once.
  void verify(int64_t index) const override {
    const size_t which = place(index).first;
    Shard& shard = *shards_[which];
    const auto file = opened(which);
    const std::lock_guard hold(shard.lock);
    if (!shard.verdict) {
      std::string problem = check(shard.raw, file->read(0, file->size()));
      if (problem.empty() && there(shard.packed.path)) {
        const MappedFile packed(shard.packed.path);
        problem = check(shard.packed, Bytes(packed.bytes(), nullptr));
      }
      shard.verdict = std::move(problem);
    }
    if (!shard.verdict->empty()) throw InputError(*shard.verdict);
  }

 private:
  void add_shard(const MdsIndex& index, const Json& entry) {
    if (index.text(entry, "format") != "mds")
      index.refuse(fmt::format("the format of a shard is '{}', not mds", index.text(entry, "format")));
    if (index.number(entry, "version") != 2)
      index.refuse(
          fmt::format("it is of version {}, and only version 2 is known", index.number(entry, "version")));
    add_columns(index, entry);
    auto shard = std::make_unique<Shard>();
    shard->remote = index.remote();
    shard->raw = index.listed(entry, "raw_data");
    shard->packed = index.listed(entry, "zip_data");
    shard->samples = index.number(entry, "samples");
    if (shard->raw.path.empty()) index.refuse("a shard has no 'raw_data'");
    // A server has what Streaming uploads: of compressed shards only the compressed ones.
    const bool remote = index.remote();
    if (remote ? !shard->packed.path.empty() : !there(shard->raw.path)) {
      if (!remote && !there(shard->packed.path))
        fail<IoError>("{}: this shard is missing; copy the folder again",
                      shard->packed.path.empty() ? shard->raw.path : shard->packed.path);
      const std::string compression = index.text(entry, "compression");
      shard->compression = compression.substr(0, compression.find(':'));  // "zstd:7" names a level, too
      if (shard->compression != "zstd" && shard->compression != "gz")
        fail<InputError>(
            "{}: is compressed by '{}'; read are zstd and gz: write the data set again, or unpack its shards",
            shard->packed.path, compression);
    }
    starts_.push_back(starts_.back() + shard->samples);
    shards_.push_back(std::move(shard));
  }

  /// Bytes are what the first sample's look like: the format has no word for sounds, nor for pictures but
  /// two.
  void judge_bytes() {
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].kind != ColumnKind::bytes) continue;
      try {
        const Value value = read(0, c);
        const ColumnKind content = content_kind(std::get<Bytes>(value).view());
        if (content == ColumnKind::picture || content == ColumnKind::audio) columns_[c].kind = content;
      } catch (const Error&) {
        // Whoever reads it hears of it.
      }
    }
  }

  /// The first shard's columns; all others must have the same.
  void add_columns(const MdsIndex& index, const Json& entry) {
    const Json &names = index.member(entry, "column_names"),
               &encodings = index.member(entry, "column_encodings"),
               &sizes = index.member(entry, "column_sizes");
    const size_t count = names.size();
    if (!names.is_array() || !encodings.is_array() || !sizes.is_array() || encodings.size() != count ||
        sizes.size() != count || count == 0)
      index.refuse("names, encodings and sizes of columns do not fit each other");
    if (!columns_.empty()) {
      if (names != layout_[0] || encodings != layout_[1] || sizes != layout_[2])
        index.refuse("its shards have different columns");
      return;
    }
    layout_ = {names, encodings, sizes};
    for (size_t c = 0; c < count; ++c) {
      if (!names[c].is_string() || !encodings[c].is_string()) index.refuse("the name of a column is no text");
      const std::string name = names[c].get<std::string>();
      const MdsEncoding encoding(encodings[c].get<std::string>(),
                                 fmt::format("{}: column '{}'", path(), name));
      if (!sizes[c].is_null() && (!sizes[c].is_number_unsigned() || sizes[c].get<uint64_t>() >= most_shard))
        index.refuse(fmt::format("the column '{}' has no proper size", name));
      const uint64_t size = sizes[c].is_null() ? 0 : sizes[c].get<uint64_t>();
      if (size != encoding.size().value_or(size))
        index.refuse(
            fmt::format("the column '{}' of encoding {} cannot have {} bytes", name, encoding.name(), size));
      columns_.push_back({name, encoding.kind()});
      encodings_.push_back(encoding);
      fixed_.push_back(size);
      sizes_ += size == 0;
    }
  }

  /// The shard of a sample and its place there.
  std::pair<size_t, uint64_t> place(int64_t index) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), static_cast<uint64_t>(index));
    if (index < 0 || after == starts_.end()) fail<InternalError>("{}: there is no sample {}", path(), index);
    const auto shard = static_cast<size_t>(after - starts_.begin()) - 1;
    return {shard, static_cast<uint64_t>(index) - starts_[shard]};
  }

  /// A shard, its header checked. Unpacked ones stay in memory, the last used first, within most_kept.
  std::shared_ptr<const RandomAccessFile> opened(size_t which) const {
    Shard& shard = *shards_[which];
    std::shared_ptr<const RandomAccessFile> file;
    {
      const std::lock_guard hold(shard.lock);
      if (shard.file && shard.compression.empty()) return shard.file;
      if (!shard.file) shard.file = open_shard(shard);
      file = shard.file;
    }
    if (!shard.compression.empty()) keep(which, file->size());
    return file;
  }

  static std::shared_ptr<const RandomAccessFile> open_shard(const Shard& shard) {
    auto file = open_file(shard.compression.empty() ? shard.raw.path : shard.packed.path);
    if (!shard.compression.empty()) {
      file->will_read(0, file->size());
      file = decompress_file(*file, shard.compression == "zstd" ? Compression::zstd : Compression::gzip,
                             std::min(shard.raw.bytes, unpacked_limit(file->size())));
    }
    const auto refuse = [&](const std::string& why) {
      fail<InputError>("{}: damaged: {}; copy the shard again", file->path(), why);
    };
    if (file->size() != shard.raw.bytes)
      refuse(fmt::format("it has {} bytes, and the index says {}", file->size(), shard.raw.bytes));
    if (file->size() < 8 + 4 * shard.samples) refuse("its table of offsets is cut off");
    if (size_at(file->read(0, 4), 0) != shard.samples)
      refuse(fmt::format("it has {} samples, and the index says {}", size_at(file->read(0, 4), 0),
                         shard.samples));
    return file;
  }

  void keep(size_t which, uint64_t size) const {
    std::vector<size_t> dropped;
    {
      const std::lock_guard hold(kept_lock_);
      const auto found =
          std::find_if(kept_.begin(), kept_.end(), [&](const auto& k) { return k.first == which; });
      if (found != kept_.end()) {
        kept_.splice(kept_.begin(), kept_, found);
        return;
      }
      kept_.emplace_front(which, size);
      kept_bytes_ += size;
      while (kept_bytes_ > most_kept && kept_.size() > 1) {
        kept_bytes_ -= kept_.back().second;
        dropped.push_back(kept_.back().first);
        kept_.pop_back();
      }
    }
    for (const size_t shard : dropped) {
      const std::lock_guard hold(shards_[shard]->lock);
      shards_[shard]->file.reset();
    }
  }

  /// "" or what differs.
  static std::string check(const Listed& listed, const Bytes& bytes) {
    for (const auto& [algorithm, wanted] : listed.hashes) {
      const auto found = hex_digest(algorithm, bytes.view());
      if (!found)
        return fmt::format("{}: its hash '{}' is of no kind that is known here", listed.path, algorithm);
      if (*found != wanted)
        return fmt::format("{}: damaged: its {} is {}, and the index says {}; copy the shard again",
                           listed.path, algorithm, *found, wanted);
    }
    return "";
  }

  std::vector<Json> layout_;
  std::vector<MdsEncoding> encodings_;
  std::vector<uint64_t> fixed_;  // 0: every sample says its own
  uint64_t sizes_ = 0;           // columns without a fixed size
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<uint64_t> starts_ = {0};  // the first sample of each shard, and the count
  mutable std::mutex kept_lock_;
  mutable std::list<std::pair<size_t, uint64_t>> kept_;  // shards and their bytes, the last used first
  mutable uint64_t kept_bytes_ = 0;
  mutable std::once_flag files_opened_;
  mutable Files files_;
};

}  // namespace

MILLRACE_FORMAT(mds){
    .name = "mds",
    .doc = "MosaicML MDS (a folder with index.json)",
    .place = 50,
    .matches =
        [](std::string_view path, std::span<const uint8_t> head) {
          const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
          return path.ends_with(".json") && text.starts_with('{') && text.find("\"shards\"") != text.npos;
        },
    .open = open_as<Mds>,
    .create = [](const std::string& path,
                 const std::vector<Column>& columns) { return create_mds(path, columns); }};

}  // namespace millrace::data
