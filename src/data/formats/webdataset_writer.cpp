// Writes WebDataset: a sample's values are members KEY.EXTENSION that webdataset's default decoders (and
// tar_values.h) read back as what they are. The column __key__ gives the keys, else they are the samples'
// numbers.
#include <filesystem>
#include <memory>
#include <set>

#include "base/format.h"
#include "data/formats/formats.h"
#include "data/formats/shard_writer.h"
#include "data/formats/tar_values.h"
#include "data/formats/webdataset_member.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

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
  fs::path numbered(size_t number) const {
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

  fs::path path_;
  std::vector<Column> columns_;
  int key_ = -1;
  int64_t count_ = 0;
  std::string last_key_;
  std::vector<std::unique_ptr<ShardWriter>> shards_;
};

}  // namespace

std::unique_ptr<DatasetWriter> create_webdataset(const std::string& path,
                                                 const std::vector<Column>& columns) {
  return std::make_unique<WebDatasetWriter>(path, columns);
}

}  // namespace millrace::data
