// Tars: plain ones of class folders, and WebDataset shards. Mapped into memory; one pass over the headers
// makes the index (24 bytes a sample and its name).
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "data/formats/formats.h"
#include "data/formats/tar_members.h"
#include "data/shard_index.h"

namespace millrace::data {
namespace {

constexpr int64_t max_classes = 1 << 20;

/// Folder and file part of "a/b/c.jpg": {"a/b", "c.jpg"}.
std::pair<std::string_view, std::string_view> split_path(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return {"", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

/// WebDataset's key and extension: the file part is cut at its first dot. False for dot files, files without
/// extension and names like __meta__.
bool split_key(std::string_view name, std::string_view& key, std::string& extension) {
  const std::string_view file = split_path(name).second;
  const size_t dot = file.find('.');
  if (dot == 0 || dot == std::string_view::npos || (file.starts_with("__") && file.ends_with("__")))
    return false;
  key = name.substr(0, name.size() - file.size() + dot);
  extension = file.substr(dot + 1);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return true;
}

class TarSource final : public Source {
 public:
  TarSource(const std::string& name, const std::vector<std::string>& paths) {
    path_ = name;
    for (const std::string& path : paths) shards_.push_back({path, MappedFile(path)});
    const bool webdataset = has_labels(shards_.front());
    for (size_t shard = 0; shard < shards_.size(); ++shard)
      webdataset ? index_keys(shard) : index_folders(shard);
    if (samples_.empty())
      fail<InputError>(
          "{}: has no pictures; wanted are JPEG files in a folder for each class (cat/1.jpg), or pairs "
          "key.jpg + key.cls",
          path_);
    webdataset ? name_classes() : sort_classes();
  }

  int64_t count() const override { return static_cast<int64_t>(samples_.size()); }
  int64_t label(int64_t index) const override { return samples_.at(index).label; }
  std::string name(int64_t index) const override {
    const Entry& entry = samples_.at(index);
    return fmt::format("{}:{}", shards_[entry.shard].path,
                       std::string_view(names_).substr(entry.name, entry.name_size));
  }
  Sample read(int64_t index) const override {
    const Entry& entry = samples_.at(index);
    Sample sample;
    sample.bytes = shards_[entry.shard].file.bytes().subspan(entry.offset, entry.size);
    return sample;
  }

 private:
  struct Shard {
    std::string path;
    MappedFile file;
  };
  struct Entry {
    uint64_t offset = 0, size = 0, name = 0;
    uint32_t name_size = 0, shard = 0;
    int64_t label = 0;
  };

  /// WebDataset or plain? The first sample with a picture tells: has it a .cls beside it?
  static bool has_labels(const Shard& shard) {
    std::string key;
    bool picture = false, label = false;
    for_each_tar_member(shard.path, shard.file.bytes(), [&](const TarMember& member) {
      std::string_view next;
      std::string extension;
      if (!member.regular || !split_key(member.name, next, extension)) return true;
      if (next != key) {
        if (picture) return false;
        key = next;
        label = false;
      }
      picture = picture || is_picture_name("." + extension);
      label = label || extension == "cls";
      return !(picture && label);
    });
    return picture && label;
  }

  void add(const TarMember& member, size_t shard, int64_t label) {
    samples_.push_back({member.offset, member.size, names_.size(), static_cast<uint32_t>(member.name.size()),
                        static_cast<uint32_t>(shard), label});
    names_ += member.name;
  }

  /// Plain tars. Labels are numbered as the classes appear; sort_classes() puts them in order.
  void index_folders(size_t shard) {
    const Shard& source = shards_[shard];
    for_each_tar_member(source.path, source.file.bytes(), [&](const TarMember& member) {
      std::string_view name = member.name;
      while (name.starts_with("./")) name.remove_prefix(2);
      while (name.ends_with('/')) name.remove_suffix(1);
      if (member.folder && !name.empty()) folders_.insert(std::string(name));
      const auto [folder, file] = split_path(name);
      if (!member.regular || file.starts_with('.') || !is_picture_name(file)) return true;
      const std::string_view label = split_path(folder).second;
      if (label.empty())
        fail<InputError>(
            "{}: {} lies outside of class folders; the label is the name of the folder (cat/1.jpg), or "
            "comes from a file key.cls beside key.jpg",
            source.path, member.name);
      const auto [at, added] =
          numbers_.try_emplace(std::string(label), static_cast<int64_t>(numbers_.size()));
      if (added && at->second >= max_classes)
        fail<InputError>("{}: more than {} classes; is every picture in a folder of its own?", source.path,
                         max_classes);
      if (last_folder_ != folder) full_.insert(last_folder_ = folder);
      add(member, shard, at->second);
      return true;
    });
  }

  void sort_classes() {
    for (const std::string& folder : folders_) {
      const auto below = [&](const auto& set) {
        const auto next = set.lower_bound(folder + "/");
        return next != set.end() && next->starts_with(folder + "/");
      };
      if (!full_.contains(folder) && !below(full_) && !below(folders_))
        fail<InputError>("class {}: no pictures in {} of {}; add JPEG files or leave the folder out",
                         split_path(folder).second, folder, path_);
    }
    std::vector<int64_t> sorted(numbers_.size());
    for (const auto& [label, number] : numbers_) {
      sorted[number] = static_cast<int64_t>(classes_.size());
      classes_.push_back(label);
    }
    for (Entry& entry : samples_) entry.label = sorted[entry.label];
    folders_.clear();
    full_.clear();
    numbers_.clear();
  }

  /// WebDataset: neighbours with one key are one sample.
  void index_keys(size_t shard) {
    const Shard& source = shards_[shard];
    std::string key;
    std::set<std::string> extensions;
    TarMember picture, label;
    const auto finish = [&] {
      if (extensions.empty()) return;
      if (picture.name.empty() || label.name.empty())
        fail<InputError>(
            "{}: sample {} has no {} (but {}); every sample needs key.jpg and key.cls, one after the other",
            source.path, key, picture.name.empty() ? "picture" : "label", fmt::join(extensions, ", "));
      add(picture, shard, parse_label(source, label));
      extensions.clear();
      picture = label = {};
    };
    for_each_tar_member(source.path, source.file.bytes(), [&](const TarMember& member) {
      std::string_view next;
      std::string extension;
      if (!member.regular || !split_key(member.name, next, extension)) return true;
      if (next != key) finish();
      key = next;
      if (!extensions.insert(extension).second)
        fail<InputError>("{}: sample {} has two members .{}; keys must differ", source.path, key, extension);
      if (extension == "cls") label = member;
      if (is_picture_name("." + extension) && picture.name.empty()) picture = member;
      return true;
    });
    finish();
  }

  int64_t parse_label(const Shard& source, const TarMember& member) {
    const std::span<const uint8_t> bytes = source.file.bytes().subspan(member.offset, member.size);
    int64_t value = 0;
    size_t at = 0, digits = 0;
    const auto space = [&] {
      return at < bytes.size() && (bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\r');
    };
    while (space()) ++at;
    for (; at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9' && value < max_classes; ++at, ++digits)
      value = value * 10 + (bytes[at] - '0');
    while (space()) ++at;
    if (digits == 0 || at != bytes.size() || value >= max_classes)
      fail<InputError>("{}: {} holds no class number from 0 to {}; write the label as decimal digits",
                       source.path, member.name, max_classes - 1);
    return value;
  }

  void name_classes() {
    int64_t top = 0;
    const Entry* highest = &samples_.front();
    for (const Entry& entry : samples_)
      if (entry.label > top) top = (highest = &entry)->label;
    if (const auto index = read_shard_index(shard_index_path(shards_.front().path))) {
      classes_ = index->classes;
      if (top >= static_cast<int64_t>(classes_.size()))
        fail<InputError>(
            "{}: sample {} is of class {}, but the index {} names only {} classes; pack the data again",
            path_, std::string_view(names_).substr(highest->name, highest->name_size), top,
            shard_index_path(shards_.front().path).string(), classes_.size());
      return;
    }
    for (int64_t i = 0; i <= top; ++i) classes_.push_back(std::to_string(i));
  }

  std::vector<Shard> shards_;
  std::vector<Entry> samples_;
  std::string names_;  // all names, one after the other
  // While indexing plain tars:
  std::map<std::string, int64_t> numbers_;
  std::set<std::string> folders_, full_;
  std::string last_folder_;
};

}  // namespace

bool is_tar(const std::string& path) {
  const MappedFile file(path);
  return is_tar_header(file.bytes());
}

std::unique_ptr<Source> open_tars(const std::string& name, const std::vector<std::string>& paths) {
  return std::make_unique<TarSource>(name, paths);
}

}  // namespace millrace::data
