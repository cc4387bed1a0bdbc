// Tars: WebDataset shards (github.com/webdataset/webdataset) and plain ones of class folders. Mapped into
// memory, or read from their server; one pass over the headers finds the samples (48 bytes a sample, its key,
// and 24 bytes a member).
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/format.h"
#include "base/mapped_file.h"
#include "base/size_text.h"
#include "data/formats/dali_index.h"
#include "data/formats/formats.h"
#include "data/formats/shard_writer.h"
#include "data/formats/tar_dataset.h"
#include "data/formats/tar_members.h"
#include "data/formats/tar_values.h"
#include "data/formats/webdataset_member.h"
#include "data/io/compression.h"
#include "data/io/location.h"

namespace millrace::data {
namespace {

constexpr size_t most_extensions = 1000;
constexpr uint64_t most_unpacked_tar = uint64_t{4} << 30;

/// Members of this size at most, such as classes, are kept of a tar on a server: they lie everywhere in it,
/// and to ask for each again would be to go through the tar again.
constexpr uint64_t most_small_member = 256;

/// The file, or what it holds, unpacked into memory, when it is compressed.
std::shared_ptr<const RandomAccessFile> content_of(std::shared_ptr<const RandomAccessFile> file,
                                                   bool& stored) {
  const Compression compression = compression_of(file->read(0, std::min<uint64_t>(file->size(), 512)).view());
  stored = compression == Compression::none;
  return stored ? file : decompress_file(*file, compression, most_unpacked_tar);
}

class ScannedTar final : public TarDataset {
 public:
  ScannedTar(const std::string& path, Files files) : TarDataset(path, std::move(files)) {
    for (const auto& file : files_) {
      bool plain = true;
      contents_.push_back(content_of(file, plain));
      stored_.push_back(plain);
      keeps_small_.push_back(plain && is_remote(file->path()));
    }
    plain_ = has_class_folders();
    for (size_t f = 0; f < files_.size(); ++f) {
      if (plain_)
        scan_folders(f);
      else if (!take_dali_index(f))
        scan_keys(f);
    }
    if (samples_.empty())
      fail<InputError>(
          "{}: the tar has no samples and so has no pictures; wanted are JPEG files in a folder for each "
          "class "
          "(cat/1.jpg), or members that belong together by their names (key.jpg, key.cls)",
          path);
    make_columns();
    if (plain_) check_folders();
    note_scanned();
  }

  int64_t count() const override { return static_cast<int64_t>(samples_.size()); }
  bool has(int64_t index, size_t column) const override {
    const TarColumn& what = tar_column(column);
    if (what.what == TarColumn::What::key || what.what == TarColumn::What::folder)
      return TarDataset::has(index, column);
    return find_member(samples_.at(static_cast<size_t>(index)), what.number) != nullptr;
  }
  std::optional<SampleExtent> extent(int64_t index) const override {
    const Entry& entry = samples_.at(static_cast<size_t>(index));
    if (!stored_[entry.file]) return std::nullopt;
    return SampleExtent{entry.file, entry.begin, entry.end - entry.begin};
  }

 protected:
  std::string key(int64_t index) const override {
    const Entry& entry = samples_.at(static_cast<size_t>(index));
    return names_.substr(entry.name, entry.name_size);
  }
  size_t file_of(int64_t index) const override { return samples_.at(static_cast<size_t>(index)).file; }
  std::optional<Bytes> find(int64_t index, const TarColumn& column) const override {
    const Entry& entry = samples_.at(static_cast<size_t>(index));
    const Member* member = find_member(entry, column.number);
    if (!member) return std::nullopt;
    if (member->small > 0) {
      const auto begin = small_.begin() + member->small - 1;
      return Bytes(std::vector<uint8_t>(begin, begin + static_cast<std::ptrdiff_t>(member->size)));
    }
    // What an index of another program says is believed only with a header in front.
    const RandomAccessFile& content = *contents_[entry.file];
    if (foreign_index_ && !is_tar_header(content.read(member->offset - tar_block, tar_block).view()))
      fail<InputError>(
          "{}: the index beside it does not fit: no member begins before byte {}; remove the index",
          files_[entry.file]->path(), member->offset);
    return content.read(member->offset, member->size);
  }

 private:
  struct Member {
    uint64_t offset = 0, size = 0;
    uint32_t extension = 0;
    uint32_t small = 0;  // 1 + where its content is kept; 0: it is not
  };
  struct Entry {
    uint64_t name = 0, first = 0, begin = 0, end = 0;
    uint32_t name_size = 0, members = 0, file = 0;
  };

  const Member* find_member(const Entry& entry, uint32_t extension) const {
    for (uint64_t i = entry.first; i < entry.first + entry.members; ++i)
      if (members_[i].extension == extension) return &members_[i];
    return nullptr;
  }

  /// Plain or WebDataset? The first sample with a picture tells: plain when that lies in a folder and no .cls
  /// beside it.
  bool has_class_folders() const {
    constexpr int most_members = 10'000;
    int members = 0;
    std::string key;
    bool picture = false, others = false;
    for_each_tar_member(*contents_[0], [&](const TarMember& member) {
      std::string_view next;
      std::string extension;
      if (++members > most_members) return false;
      if (!member.regular || !split_key(member.name, next, extension)) return true;
      if (next != key) {
        if (picture) return false;
        key = next;
        others = false;
      }
      is_picture_extension(extension) ? picture = true : others = true;
      return !(picture && others);
    });
    std::string_view name = key;
    while (name.starts_with("./")) name.remove_prefix(2);
    return picture && !others && name.find('/') != std::string_view::npos;
  }

  uint32_t extension_number(const std::string& extension, const std::string& path) {
    const auto [at, added] = numbers_.try_emplace(extension, static_cast<uint32_t>(extensions_.size()));
    if (added) {
      if (extensions_.size() == most_extensions)
        fail<InputError>(
            "{}: more than {} different extensions (as {}); a key ends at the first dot of the file's name",
            path, most_extensions, extension);
      extensions_.push_back(extension);
    }
    return at->second;
  }

  void begin_sample(std::string_view name, const TarMember& member, size_t file) {
    samples_.push_back({names_.size(), members_.size(), member.begin, member.end,
                        static_cast<uint32_t>(name.size()), 0, static_cast<uint32_t>(file)});
    names_ += name;
  }
  void add_member(const TarMember& member, uint32_t extension) {
    members_.push_back({member.offset, member.size, extension, 0});
    if (const size_t file = samples_.back().file;
        keeps_small_[file] && member.size <= most_small_member && small_.size() < UINT32_MAX - member.size) {
      members_.back().small = static_cast<uint32_t>(small_.size() + 1);
      small_ += contents_[file]->read(member.offset, member.size).text();
    }
    ++samples_.back().members;
    samples_.back().end = member.end;
  }

  /// Plain tars: each picture is a sample.
  void scan_folders(size_t file) {
    for_each_tar_member(*contents_[file], [&](const TarMember& member) {
      std::string_view name = member.name, key;
      while (name.starts_with("./")) name.remove_prefix(2);
      while (name.ends_with('/')) name.remove_suffix(1);
      const bool debris = name.find("__MACOSX") != std::string_view::npos;  // left by macOS's own archiver
      if (member.folder && !name.empty() && !debris) folders_.insert(std::string(name));
      std::string extension;
      if (!member.regular || !split_key(name, key, extension) || !is_picture_extension(extension))
        return true;
      const std::string_view folder = split_path(name).first;
      if (folder.empty() && folder_fault_.empty())
        folder_fault_ = fmt::format(
            "{}: {} lies outside of class folders; the label is the name of the folder (cat/1.jpg), or comes "
            "from "
            "a file key.cls beside key.jpg",
            files_[file]->path(), member.name);
      if (last_folder_ != folder) full_.insert(last_folder_ = folder);
      begin_sample(name, member, file);
      add_member(member, 0);
      return true;
    });
  }

  /// A folder without pictures is a class without any.
  void check_folders() {
    for (const std::string& folder : folders_) {
      const auto below = [&](const auto& set) {
        const auto next = set.lower_bound(folder + "/");
        return next != set.end() && next->starts_with(folder + "/");
      };
      if (folder_fault_.empty() && !full_.contains(folder) && !below(full_) && !below(folders_))
        folder_fault_ =
            fmt::format("class {}: no pictures in {} of {}; add JPEG files or leave the folder out",
                        split_path(folder).second, folder, path());
    }
    folders_.clear();
    full_.clear();
  }

  /// WebDataset: neighbours with one key are one sample.
  void scan_keys(size_t file) {
    const std::string& path = files_[file]->path();
    std::string key, extension;
    bool inside = false;
    for_each_tar_member(*contents_[file], [&](const TarMember& member) {
      std::string_view next;
      if (!member.regular || !split_key(member.name, next, extension)) return true;
      if (!inside || next != key) begin_sample(next, member, file);
      inside = true;
      key = next;
      const uint32_t number = extension_number(extension, path);
      for (size_t i = samples_.back().first; i < members_.size(); ++i)
        if (members_[i].extension == number)
          fail<InputError>("{}: sample {} has two members .{}; keys must differ", path, key, extension);
      add_member(member, number);
      return true;
    });
  }

  /// Takes the samples from DALI's index beside the tar; false when there is none that fits.
  bool take_dali_index(size_t file) {
    const std::string& path = files_[file]->path();
    const std::string index_path = dali_index_path(path);
    std::error_code ignored;
    if (!stored_[file] || !std::filesystem::is_regular_file(index_path, ignored)) return false;
    try {
      const MappedFile mapped(index_path);
      const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()),
                                  mapped.bytes().size());
      if (!text.starts_with("v1.")) return false;  // another program's
      const Bytes content = contents_[file]->read(0, contents_[file]->size());
      for (const auto& sample : parse_dali_index(text, content.view())) add_dali_sample(sample, file);
    } catch (const Error& error) {
      note(fmt::format("{} {}; it is not used", index_path, error.what()));
      return false;
    }
    foreign_index_ = true;
    return true;
  }
  void add_dali_sample(const std::vector<DaliMember>& sample, size_t file) {
    for (const DaliMember& listed : sample) {
      TarMember member;
      member.offset = listed.offset;
      member.size = listed.size;
      member.begin = listed.offset - 512;
      member.end =
          std::min<uint64_t>(listed.offset + listed.size + tar_padding(listed.size), contents_[file]->size());
      std::string_view key;
      std::string extension;
      if (!split_key(listed.name, key, extension)) extension = listed.extension;
      const std::string name = key.empty() ? std::to_string(samples_.size()) : std::string(key);
      if (&listed == &sample.front()) begin_sample(name, member, file);
      add_member(member, extension_number(extension, files_[file]->path()));
    }
  }

  void note_scanned() {
    uint64_t bytes = 0;
    for (size_t f = 0; f < files_.size(); ++f)
      if (keeps_small_[f]) bytes += files_[f]->size();
    if (bytes > 0)
      note(fmt::format(
          "{}: has no index beside it, so that all of it ({}) is gone through to find the samples; "
          "millrace data index writes one",
          path(), memory_text(static_cast<int64_t>(bytes))));
  }

  void make_columns() {
    add_column("__key__", ColumnKind::text, {TarColumn::What::key});
    if (plain_) {
      add_column("label", ColumnKind::text, {TarColumn::What::folder});
      add_column("image", ColumnKind::picture, {TarColumn::What::any_picture});
      return;
    }
    const bool classes =
        std::any_of(extensions_.begin(), extensions_.end(), [](const std::string& extension) {
          return extension == "cls" || extension == "class" || extension == "label";
        });
    const bool pictures = std::any_of(extensions_.begin(), extensions_.end(), is_picture_extension);
    if (pictures && !classes && !split_path(key(0)).first.empty())
      add_column("label", ColumnKind::text, {TarColumn::What::folder});
    std::vector<const Entry*> first(extensions_.size());
    std::vector<const Member*> content(extensions_.size());
    size_t missing = extensions_.size();
    for (const Entry& entry : samples_) {
      for (uint32_t i = 0; i < entry.members; ++i) {
        const Member& member = members_[entry.first + i];
        if (content[member.extension]) continue;
        content[member.extension] = &member;
        first[member.extension] = &entry;
        --missing;
      }
      if (missing == 0) break;
    }
    for (uint32_t e = 0; e < extensions_.size(); ++e) {
      Bytes bytes;  // of arrays, which may be several
      if (member_kind(extensions_[e]) == ColumnKind::array)
        bytes = contents_[first[e]->file]->read(content[e]->offset, content[e]->size);
      const ColumnKind kind = member_kind(extensions_[e], first_contents(e));
      for (const std::string& column : member_columns(extensions_[e], bytes))
        add_column(column, kind, {TarColumn::What::member, extensions_[e], split_column(column).second, e});
    }
  }

  /// Of JSON, which may be numbers: what the first samples have.
  std::vector<Bytes> first_contents(uint32_t extension) const {
    constexpr size_t most = 64;
    std::vector<Bytes> contents;
    if (member_kind(extensions_[extension]) != ColumnKind::json) return contents;
    for (const Entry& entry : samples_) {
      for (uint32_t i = 0; i < entry.members; ++i)
        if (const Member& member = members_[entry.first + i]; member.extension == extension)
          contents.push_back(contents_[entry.file]->read(member.offset, member.size));
      if (contents.size() >= most) break;
    }
    return contents;
  }

  bool plain_ = false, foreign_index_ = false;
  Files contents_;            // unpacked where a tar is compressed,
  std::vector<bool> stored_;  // which these are not
  std::vector<bool> keeps_small_;
  std::string small_;  // contents of small members
  std::vector<Entry> samples_;
  std::vector<Member> members_;
  std::string names_;  // all keys, one after the other
  std::vector<std::string> extensions_;
  std::unordered_map<std::string, uint32_t> numbers_;
  // While plain tars are gone through:
  std::set<std::string> folders_, full_;
  std::string last_folder_;
};

/// A sample's values are members KEY.EXTENSION that webdataset's default decoders (and tar_values.h) read
/// back as what they are. The column __key__ gives the keys, else they are the samples' numbers.
class WebDatasetWriter final : public DatasetWriter {
 public:
  WebDatasetWriter(const std::string& path, const std::vector<Column>& columns)
      : path_(path), columns_(columns) {
    if (path_.extension() != ".tar")
      fail<InputError>("{}: WebDataset shards are tars; name it {}.tar", path, path_.stem().string());
    std::set<std::string> bases;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].name == "__key__" && columns_[c].kind == ColumnKind::text) {
        key_ = static_cast<int>(c);
        continue;
      }
      const std::string& name = columns_[c].name;
      if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos)
        fail<InputError>("{}: the column '{}' cannot be the extension of a file; rename it", path, name);
      const auto [base, added] = bases.insert(member_extension(columns_[c], usual(columns_[c].kind), path));
      if (!added) fail<InputError>("{}: two columns would both be .{}; rename '{}'", path, *base, name);
    }
    if (bases.empty()) fail<InputError>("{}: there are no columns to write", path);
  }

  void add(std::span<const Value> values) override {
    const std::string key = key_of(values);
    std::vector<std::vector<uint8_t>> made(columns_.size());
    std::vector<ShardMember> members;
    uint64_t size = 0;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (static_cast<int>(c) == key_ || std::holds_alternative<std::monostate>(values[c])) continue;
      members.push_back(
          member_of(columns_[c], values[c], made[c], fmt::format("{}: sample {}", path_.string(), count_)));
      size += members.back().content.size();
    }
    if (members.empty()) fail<InputError>("{}: sample {} has no values", path_.string(), count_);
    if (shards_.empty() || shards_.back()->full({}, size)) begin_shard();
    shards_.back()->add(key, std::move(members));
    ++count_;
    last_key_ = key;
  }

  void finish() override {
    if (shards_.empty()) fail<InputError>("{}: there are no samples to write", path_.string());
    for (const auto& shard : shards_) shard->finish();
    shards_.clear();
  }

 private:
  std::filesystem::path numbered(size_t number) const {
    return path_.parent_path() / fmt::format("{}-{:06}.tar", path_.stem().string(), number);
  }

  /// One shard is called as asked for; as soon as there are several, they are numbered.
  void begin_shard() {
    if (shards_.size() == 1) shards_[0]->rename(numbered(0));
    shards_.push_back(std::make_unique<ShardWriter>(shards_.empty() ? path_ : numbered(shards_.size())));
  }

  static const char* usual(ColumnKind kind) {
    return kind == ColumnKind::picture ? "jpg" : kind == ColumnKind::audio ? "wav" : "";
  }

  /// Keys of folders are names of files: without their extension.
  static std::string without_extension(const std::string& key) {
    const size_t dot = key.rfind('.');
    if (dot == std::string::npos) return key;
    const ColumnKind kind = member_kind(key.substr(dot + 1));
    return kind == ColumnKind::bytes && key.substr(dot) != ".bin" ? key : key.substr(0, dot);
  }

  std::string key_of(std::span<const Value> values) const {
    if (key_ < 0) return fmt::format("{:08}", count_);
    const auto* named = std::get_if<std::string>(&values[static_cast<size_t>(key_)]);
    if (!named) fail<InputError>("{}: sample {} has no key", path_.string(), count_);
    const std::string text = without_extension(*named);
    std::string_view key;
    std::string extension;
    if (!split_key(text + ".x", key, extension) || key != text)
      fail<InputError>(
          "{}: sample {} has the key '{}', which is none in WebDataset: its last part must have no dot and "
          "not begin with one",
          path_.string(), count_, text);
    if (count_ > 0 && text == last_key_)
      fail<InputError>("{}: samples {} and {} both have the key '{}'", path_.string(), count_ - 1, count_,
                       text);
    return text;
  }

  std::filesystem::path path_;
  std::vector<Column> columns_;
  int key_ = -1;
  int64_t count_ = 0;
  std::string last_key_;
  std::vector<std::unique_ptr<ShardWriter>> shards_;
};

bool matches_tar(std::string_view path, std::span<const uint8_t> head) {
  switch (compression_of(head)) {
    case Compression::none:
      return is_tar_header(head);
    case Compression::gzip:
      return is_tar_header(deflated_head(head, 512));
    default:  // their first block may be longer than the head: the name tells
      return without_compression(path).ends_with(".tar") || path.ends_with(".tbz2") ||
             path.ends_with(".txz") || path.ends_with(".tzst");
  }
}

}  // namespace

MILLRACE_FORMAT(webdataset){.name = "webdataset",
                            .doc = "tar (WebDataset shards, or folders of pictures)",
                            .place = 70,
                            .matches = matches_tar,
                            .open = open_as<ScannedTar>,
                            .create = create_as<WebDatasetWriter>,
                            .open_indexed = open_indexed_tars};

}  // namespace millrace::data
